/** What a request is answered. Not a Response: taking one apart to add headers costs as much as the rest of a request. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A JSON answer. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
    body: JSON.stringify(body),
  };
}

/** Sends the browser elsewhere. */
export function redirect(status: 302 | 303, location: string, headers: Record<string, string> = {}): Answer {
  return { status, headers: { location, ...headers }, body: "" };
}

/** Where Elysia takes status and headers from. */
export interface AnswerTarget {
  status?: number | string;
  readonly headers: Record<string, string | number | undefined>;
}

/** Puts the answer where Elysia takes it from; the body is what the handler returns. */
export function send(set: AnswerTarget, { status, headers, body }: Answer): string {
  set.status = status;
  for (const name in headers) set.headers[name] = headers[name];
  return body;
}
