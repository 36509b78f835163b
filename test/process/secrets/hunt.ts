/** A value that nothing may show. */
export interface Hunted {
  readonly name: string;
  readonly bytes: Buffer;
}

/** What was written somewhere, a character a byte. */
export interface Written {
  readonly where: string;
  readonly bytes: Buffer;
}

export function hunted(name: string, value: string | Uint8Array): Hunted {
  const bytes = typeof value === "string" ? Buffer.from(value) : Buffer.from(value);
  // A shorter one would be found by chance.
  if (bytes.length < PART_CHARS) throw new Error(`${name} has only ${bytes.length} bytes`);
  return { name, bytes };
}

/** So much of a secret, in whatever form, gives it away. */
const PART_CHARS = 12;

/**
 * Every place where a part of a secret was written: of the secret itself, of its hex digits, its base64 at any offset
 * within a longer text, its UTF-16, or the form it has in a URL. Each is told once a place.
 */
export function findSecrets(secrets: readonly Hunted[], written: Iterable<Written>): string[] {
  const parts = new Map<string, string>();
  for (const { name, bytes } of secrets) {
    for (const [form, text] of formsOf(bytes)) {
      // Forms of the same letters are told as the plainest of them.
      for (const part of partsOf(text)) if (!parts.has(part)) parts.set(part, `${name} (${form})`);
    }
  }
  const found = new Set<string>();
  for (const { where, bytes } of written) {
    const text = bytes.toString("latin1");
    for (const part of partsOf(text)) {
      const secret = parts.get(part);
      if (secret !== undefined) found.add(`${secret} in ${where}`);
    }
  }
  return [...found];
}

function* partsOf(text: string): Generator<string> {
  for (let at = 0; at + PART_CHARS <= text.length; at++) yield text.slice(at, at + PART_CHARS);
}

/** Base64 takes three bytes at a time, so what stands before the secret decides how it looks. */
const BASE64_OFFSETS = [0, 1, 2];

function* formsOf(bytes: Buffer): Generator<readonly [form: string, text: string]> {
  yield ["plain", bytes.toString("latin1")];
  yield ["hex", bytes.toString("hex")];
  yield ["upper-case hex", bytes.toString("hex").toUpperCase()];
  yield ["UTF-16", Buffer.from(bytes.toString("latin1"), "utf16le").toString("latin1")];
  yield ["in a URL", encodeURIComponent(bytes.toString("latin1"))];
  for (const offset of BASE64_OFFSETS) {
    const whole = bytes.subarray(offset, bytes.length - ((bytes.length - offset) % 3));
    yield ["base64", whole.toString("base64")];
    yield ["base64url", whole.toString("base64url")];
  }
}
