/** No browser gets one into an address: they come from what was cut or glued wrongly. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/**
 * The address that a browser asks for when it is given this one (https://url.spec.whatwg.org): a raw space is escaped, a
 * host is in Punycode. Undefined: a browser takes it for none of http or https, or it holds a control character.
 */
export function normalizedUrl(raw: string): string | undefined {
  const url = CONTROL_CHARACTER.test(raw) ? null : URL.parse(raw);
  return url?.protocol === "https:" || url?.protocol === "http:" ? url.href : undefined;
}
