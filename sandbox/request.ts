/** The token of a request's `Authorization: Bearer`; empty without one. */
export function bearerOf({ headers }: Request): string {
  return /^Bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1] ?? "";
}

/** The body, whatever its type claims to be; undefined where it is no JSON. */
export async function jsonOf(request: Request): Promise<unknown> {
  return parseJson(await request.text());
}

/** Undefined for what is no JSON. */
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

/** A value whose members may be looked at; of anything but an object there are none. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The answer with its pause in seconds, where there is one. */
export function withRetryAfter(answer: Response, seconds: number | undefined): Response {
  if (seconds !== undefined) answer.headers.set("retry-after", String(seconds));
  return answer;
}
