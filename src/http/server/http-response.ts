import { ElysiaCustomStatusResponse } from "elysia";

/** An object with request headers, for functions that read nothing else of a request. */
export interface WithHeaders {
  readonly headers: Headers;
}

/**
 * A response before it becomes a `Response`. Hooks add headers to this object, because taking a `Response` apart costs
 * as much as all other work for a request.
 */
export interface HttpResponse<Status extends number = number> {
  readonly status: Status;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The body in bytes, encoded as the header `content-encoding` says; sent in place of `body`. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
  /** The body as a stream, sent in place of `body`. It need not end by itself. */
  readonly stream?: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** Headers of most responses. If a response has this very object, app.ts knows that it has no other headers. */
export const JSON_HEADERS: HttpResponse["headers"] = {
  "content-type": "application/json",
  "cache-control": "no-store",
};

export function json<Status extends number>(
  status: Status,
  body: unknown,
  headers?: Record<string, string>,
): HttpResponse<Status> {
  const all = headers === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...headers };
  return { status, headers: all, body: JSON.stringify(body) };
}

export function redirect<Status extends 302 | 303>(
  status: Status,
  location: string,
  headers: Record<string, string> = {},
): HttpResponse<Status> {
  return { status, headers: { location, ...headers }, body: "" };
}

export function html<Status extends number>(
  status: Status,
  body: string,
  headers: Record<string, string> = {},
): HttpResponse<Status> {
  return {
    status,
    headers: {
      ...(status === 401 ? { "www-authenticate": 'Bearer realm="reachlog"' } : {}),
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      // Without any referrer, browsers would not send the origin with the form to sign in, even to this service.
      "referrer-policy": "same-origin",
      ...headers,
    },
    body,
  };
}

export function attachment(type: string, file: string) {
  return {
    "content-type": type,
    "cache-control": "no-store",
    "content-disposition": `attachment; filename="${file}"`,
  };
}

const WHOLE = Symbol("answer");

/**
 * Wraps an HTTP response with its status and headers, so that a handler can return it. Typed clients see its body as
 * the type `Body`.
 */
export function whole<Status extends number, Body = string>(
  answer: HttpResponse<Status>,
  value?: Body,
): ElysiaCustomStatusResponse<Status, Body> {
  return { [WHOLE]: answer, value } as never;
}

export function withHeaders<Status extends number, Body>(
  { code, response }: { readonly code: Status; readonly response: Body },
  headers: Record<string, string>,
): ElysiaCustomStatusResponse<Status, Body> {
  return whole(json(code, response, headers), response);
}

/**
 * Converts what a handler returned to a complete response. `status` applies if the handler returned only a JSON value.
 */
export function toHttpResponse(returned: unknown, status = 200): HttpResponse {
  if (returned instanceof ElysiaCustomStatusResponse) return toHttpResponse(returned.response, Number(returned.code));
  return (returned as { readonly [WHOLE]?: HttpResponse } | null)?.[WHOLE] ?? json(status, returned);
}

/** Returns the JSON value that a handler returned, whether alone, with a status, or with headers. */
export function toValue(returned: unknown): unknown {
  if (returned instanceof ElysiaCustomStatusResponse) return returned.response;
  const wrapped = returned as { readonly [WHOLE]?: HttpResponse; readonly value?: unknown };
  return wrapped[WHOLE] === undefined ? returned : wrapped.value;
}
