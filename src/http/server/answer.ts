/** What a request is answered. Not a Response: taking one apart to add headers costs as much as the rest of a request. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** In place of a body: one that has no end of its own. */
  readonly stream?: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** One object, by which the way out knows that there are no others. */
export const JSON_HEADERS: Answer["headers"] = { "content-type": "application/json", "cache-control": "no-store" };

export function json(status: number, body: unknown, headers?: Record<string, string>): Answer {
  const all = headers === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...headers };
  return { status, headers: all, body: JSON.stringify(body) };
}

/** Sends the browser elsewhere. */
export function redirect(status: 302 | 303, location: string, headers: Record<string, string> = {}): Answer {
  return { status, headers: { location, ...headers }, body: "" };
}

/** A page of the console. */
export function html(status: number, body: string, headers: Record<string, string> = {}): Answer {
  return {
    status,
    headers: {
      ...(status === 401 ? { "www-authenticate": 'Bearer realm="reachlog"' } : {}),
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      // Without a referrer at all, browsers would withhold the origin of the sign-in form from us too.
      "referrer-policy": "same-origin",
      ...headers,
    },
    body,
  };
}
