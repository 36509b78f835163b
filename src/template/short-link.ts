// This file makes and recognises short links and their codes. Templates are parsed and rendered elsewhere.
import { createHash } from "node:crypto";

/**
 * Characters that short links' codes consist of, without those that are easily confused, because people read links
 * aloud.
 */
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/**
 * Length of the code of a template's shared link: 58 bits are enough to tell apart all links that a log will ever hold.
 */
export const SHARED_CODE_CHARS = 10;

/** Length of the code of a recipient's personal link: 76 bits, so that no code can be guessed. */
export const PERSONAL_CODE_CHARS = 13;

/** A short link in a template's variant, shared by all recipients who get that variant. */
export interface ShortLink {
  readonly target: string;
  /** The short link's host and path before its code. */
  readonly domain: string;
  readonly code: string;
}

/** The URL that short links begin with, such as `https://go.example`: http or https, without a slash at the end. */
export type LinkBase = string;

/** Maximum length of a short link's target, as for the URL of a click. */
const TARGET_CHARS_MAX = 4_096;

/** Returns a short link's target as a browser requests it. Undefined if it is no http or https URL, or is too long. */
export function toTarget(raw: string): string | undefined {
  const isWeb = raw.length <= TARGET_CHARS_MAX && /^https?:\/\//i.test(raw) && URL.canParse(raw);
  return isWeb ? new URL(raw).href : undefined;
}

/** Makes a short link. The same template, variant, target and base always give the same link. */
export function createShortLink(base: LinkBase, template: string, variant: string, target: string): ShortLink {
  const code = encodeCode(JSON.stringify([base, template, variant, target]), SHARED_CODE_CHARS);
  return { target, domain: toDomain(base), code };
}

/** Creates the code of a personal link. `secret` is random, one for each message. */
export function createPersonalCode(secret: string, { code }: { readonly code: string }): string {
  return encodeCode(JSON.stringify([secret, code]), PERSONAL_CODE_CHARS);
}

/** Makes the code of one recipient's page to opt out, which only the holder of `secret` can make. */
export function createOptOutCode(secret: string): string {
  return encodeCode(JSON.stringify([secret, "optout"]), PERSONAL_CODE_CHARS);
}

/**
 * True if the text has the form of a code that templates and messages make. Operators may not choose such a code for a
 * link.
 */
export function isReservedCode(code: string): boolean {
  return SHARED_CODE.test(code) || isPersonalCode(code);
}

/** True if the text has the form of a personal link's code. */
export function isPersonalCode(code: string): boolean {
  return PERSONAL_CODE.test(code);
}

/**
 * Number of hex digits of the hash that readers see in place of a personal code: 48 bits tell all codes of a log apart.
 */
const HIDDEN_DIGITS = 12;

/**
 * Returns the text that readers see in place of a personal code. The code has 76 random bits, so no reader can find it
 * by its hash.
 */
export function hideCode(code: string): string {
  return `hidden-${createHash("sha256").update(code).digest("hex").slice(0, HIDDEN_DIGITS)}`;
}

const SHARED_CODE = new RegExp(`^[${ALPHABET}]{${SHARED_CODE_CHARS}}$`);
const PERSONAL_CODE = new RegExp(`^[${ALPHABET}]{${PERSONAL_CODE_CHARS}}$`);

/** Returns the part of short links before their code, as clicks name it: `go.example` or `reach.example/l`. */
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
