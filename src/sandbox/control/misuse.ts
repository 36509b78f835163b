/** Somebody asked the control API for what it cannot do; the message says what. */
export class Misuse extends Error {
  override readonly name = "Misuse";
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
