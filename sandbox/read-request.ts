/** Returns the token in a request's `Authorization: Bearer`; empty if there is none. */
export function bearerOf({ headers }: Request): string {
  return /^Bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1] ?? "";
}

/** Parses a request's body as JSON, whatever its declared type; undefined if it is not JSON. */
export async function jsonOf(request: Request): Promise<unknown> {
  return parseJson(await request.text());
}

/** Parses a text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isJson({ headers }: Request): boolean {
  return /^application\/json\b/i.test(headers.get("content-type") ?? "");
}

/** Returns the value as an object whose members can be read; an empty one if it is no object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Adds `retry-after` to the answer if `seconds` is given. */
export function withRetryAfter(answer: Response, seconds: number | undefined): Response {
  if (seconds !== undefined) answer.headers.set("retry-after", String(seconds));
  return answer;
}
