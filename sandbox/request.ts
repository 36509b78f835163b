/** The token in `Authorization: Bearer`; empty without one. */
export function bearerOf({ headers }: Request): string {
  return /^Bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1] ?? "";
}

/** The body, regardless of its declared type; undefined if it is not JSON. */
export async function jsonOf(request: Request): Promise<unknown> {
  return parseJson(await request.text());
}

/** Undefined if the text is not JSON. */
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

/** Returns a value whose members can be read; for anything but an object, an empty one. */
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
