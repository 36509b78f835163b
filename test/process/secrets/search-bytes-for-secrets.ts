/** A secret that no output may contain. */
export interface Hunted {
  readonly name: string;
  readonly bytes: Buffer;
}

/** An output in which secrets are looked for, with one character for each byte. */
export interface Written {
  readonly where: string;
  readonly bytes: Buffer;
}

export function hunted(name: string, value: string | Uint8Array): Hunted {
  const bytes = typeof value === "string" ? Buffer.from(value) : Buffer.from(value);
  // A secret that is too short could occur in an output by chance.
  if (bytes.length < PART_CHARS) throw new Error(`${name} has only ${bytes.length} bytes`);
  return { name, bytes };
}

/** Length, in characters, of a part of a secret. An output with such a part, in any encoding, gives the secret away. */
const PART_CHARS = 12;

/**
 * Finds every place that contains a part of a secret, plain, as hex, base64 at any offset within a longer text, UTF-16,
 * or in its form in a URL. Reports each secret once per place.
 */
export function findSecrets(secrets: readonly Hunted[], written: Iterable<Written>): string[] {
  const parts = new Map<string, string>();
  for (const { name, bytes } of secrets) {
    for (const [form, text] of formsOf(bytes)) {
      // If two forms of a secret are equal, the first and plainest one is reported.
      for (const part of partsOf(text)) if (!parts.has(part)) parts.set(part, `${name} (${form})`);
    }
  }
  // Most bytes of an output do not begin a part of a secret. A table with one entry for each hash of a beginning tells
  // that without making a text.
  const beginnings = new Uint8Array(1 << HASH_BITS);
  for (const part of parts.keys()) beginnings[hashBeginning(Buffer.from(part, "latin1"), 0)] = 1;
  const found = new Set<string>();
  for (const { where, bytes } of written) {
    for (let at = 0; at + PART_CHARS <= bytes.length; at++) {
      if (beginnings[hashBeginning(bytes, at)] === 0) continue;
      const secret = parts.get(bytes.toString("latin1", at, at + PART_CHARS));
      if (secret !== undefined) found.add(`${secret} in ${where}`);
    }
  }
  return [...found];
}

/**
 * Number of bits of the hash of four bytes. The hash decides which positions of an output are compared with the
 * secrets. With 22 bits, about one position in a hundred is compared although no secret begins there.
 */
const HASH_BITS = 22;

/** Hashes the four bytes at a place (Knuth's multiplicative hash). */
function hashBeginning(bytes: Buffer, at: number): number {
  const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  return Math.imul(word, 0x9e37_79b1) >>> (32 - HASH_BITS);
}

function* partsOf(text: string): Generator<string> {
  for (let at = 0; at + PART_CHARS <= text.length; at++) yield text.slice(at, at + PART_CHARS);
}

/**
 * Possible numbers of bytes between a multiple of three and a secret within a longer text. Base64 encodes three bytes
 * at a time, so a secret has a different form for each.
 */
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
