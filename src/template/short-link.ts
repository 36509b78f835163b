import { createHash } from "node:crypto";

/** The characters of codes, without those that are easily confused, because people read links aloud. */
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/**
 * Characters of the code of a template's link: 58 bits are enough to tell apart all links that a log will ever hold.
 */
export const SHARED_CODE_CHARS = 10;

/** Characters of the code of a recipient's own link: 76 bits, so that no code can be guessed. */
export const PERSONAL_CODE_CHARS = 13;

/** A link that a template's variant holds, shared by all who get that variant. */
export interface ShortLink {
  readonly target: string;
  /** Host and path before the code. */
  readonly domain: string;
  readonly code: string;
}

/** The URL that short links begin with, such as `https://go.example`: http or https, without a slash at the end. */
export type LinkBase = string;

/** Longest target of a link, in characters, as in the address of a click. */
const TARGET_CHARS_MAX = 4_096;

/** The target of a link as a browser requests it. Undefined if it is no http or https URL, or is too long. */
export function toTarget(raw: string): string | undefined {
  const isWeb = raw.length <= TARGET_CHARS_MAX && /^https?:\/\//i.test(raw) && URL.canParse(raw);
  return isWeb ? new URL(raw).href : undefined;
}

/** Makes a short link. The same template, variant, target and base always give the same link. */
export function createShortLink(base: LinkBase, template: string, variant: string, target: string): ShortLink {
  const code = encodeCode(JSON.stringify([base, template, variant, target]), SHARED_CODE_CHARS);
  return { target, domain: toDomain(base), code };
}

/** Makes the code of a personal link. `secret` is random, one for each message. */
export function createPersonalCode(secret: string, { code }: Pick<ShortLink, "code">): string {
  return encodeCode(JSON.stringify([secret, code]), PERSONAL_CODE_CHARS);
}

/** True for codes that only templates and messages may use. */
export function isReservedCode(code: string): boolean {
  return SHARED_CODE.test(code) || isPersonalCode(code);
}

/** True if the text has the form of a personal link's code. */
export function isPersonalCode(code: string): boolean {
  return PERSONAL_CODE.test(code);
}

/** Hex digits of a code's hash that replace it: 48 bits tell all codes of a log apart. */
const HIDDEN_DIGITS = 12;

/**
 * The replacement for a personal code that readers see. The code has 76 random bits, so no reader can find it by its
 * hash.
 */
export function hideCode(code: string): string {
  return `hidden-${createHash("sha256").update(code).digest("hex").slice(0, HIDDEN_DIGITS)}`;
}

const SHARED_CODE = new RegExp(`^[${ALPHABET}]{${SHARED_CODE_CHARS}}$`);
const PERSONAL_CODE = new RegExp(`^[${ALPHABET}]{${PERSONAL_CODE_CHARS}}$`);

/** The part of a link before its code, as clicks name it: `go.example` or `reach.example/l`. */
export function toDomain(base: LinkBase): string {
  return base.replace(/^https?:\/\//, "");
}

function encodeCode(text: string, characters: number): string {
  let number = BigInt(`0x${createHash("sha256").update(text, "utf8").digest("hex")}`);
  let code = "";
  for (; code.length < characters; number /= BigInt(ALPHABET.length)) {
    code += ALPHABET[Number(number % BigInt(ALPHABET.length))];
  }
  return code;
}
