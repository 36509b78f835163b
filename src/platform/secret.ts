const REDACTED = "[redacted]";

/** A value that logs, JSON, templates and debuggers show as `[redacted]`; only `reveal()` gives it away. */
export interface Secret {
  reveal(): string;
  toString(): string;
  toJSON(): string;
}

/** Creates a secret. Its value is in a closure, so no walk over properties can find it. */
export function secret(value: string): Secret {
  const redacted = (): string => REDACTED;
  return Object.freeze({
    reveal: () => value,
    toString: redacted,
    toJSON: redacted,
    [Symbol.for("nodejs.util.inspect.custom")]: redacted,
  });
}

/** Matches a key of 32 bytes in hex, as AES-256 needs: 64 digits. In base64 it has 43. */
const HEX_KEY = /^[0-9a-f]{64}$/i;
const BASE64_KEY = /^[A-Za-z0-9+/_-]{43}=?$/;

/** Decodes the master key from hex, base64 or base64url; undefined if the text is none of these. */
export function decodeKey(text: string): Uint8Array | undefined {
  if (HEX_KEY.test(text)) return new Uint8Array(Buffer.from(text, "hex"));
  if (!BASE64_KEY.test(text)) return undefined;
  return new Uint8Array(Buffer.from(text, "base64"));
}
