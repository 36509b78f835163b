import { createHash } from "node:crypto";

/** Without characters that are easily taken for another: people read a link aloud. */
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** Characters of the code of a template's link: 58 bits keep all that a log will ever see apart. */
export const SHARED_CODE_CHARS = 10;

/** Characters of the code of a recipient's own link: 76 bits, so that no code can be guessed. */
export const PERSONAL_CODE_CHARS = 13;

/** A link that a template's variant holds, shared by all who get that variant. */
export interface ShortLink {
  readonly target: string;
  /** Host and path that come before the code. */
  readonly domain: string;
  readonly code: string;
}

/** Where short links begin, such as `https://go.example`: an http or https URL without a slash at its end. */
export type LinkBase = string;

/** Longest target of a link, in characters: as long as the address of a click may be. */
const TARGET_CHARS_MAX = 4_096;

/** The target of a link as a browser asks for it; undefined: it is no http or https URL. */
export function toTarget(raw: string): string | undefined {
  const isWeb = raw.length <= TARGET_CHARS_MAX && /^https?:\/\//i.test(raw) && URL.canParse(raw);
  return isWeb ? new URL(raw).href : undefined;
}

/** The same template, variant, target and base always give the same link. */
export function createShortLink(base: LinkBase, template: string, variant: string, target: string): ShortLink {
  const code = encodeCode(JSON.stringify([base, template, variant, target]), SHARED_CODE_CHARS);
  return { target, domain: toDomain(base), code };
}

/** The code of a recipient's own link; `secret`: random, one for each message. */
export function createPersonalCode(secret: string, { code }: Pick<ShortLink, "code">): string {
  return encodeCode(JSON.stringify([secret, code]), PERSONAL_CODE_CHARS);
}

/** True for codes that only templates give out. */
export function isReservedCode(code: string): boolean {
  return SHARED_CODE.test(code) || isPersonalCode(code);
}

/** True for what may be the code of a recipient's own link. */
export function isPersonalCode(code: string): boolean {
  return PERSONAL_CODE.test(code);
}

/** Hex digits of a code's hash that stand for it: 48 bits tell all codes of a log apart. */
const HIDDEN_DIGITS = 12;

/** Stands for a personal code where readers see it. The code has 76 random bits, so no reader finds it by its hash. */
export function hideCode(code: string): string {
  return `hidden-${createHash("sha256").update(code).digest("hex").slice(0, HIDDEN_DIGITS)}`;
}

const SHARED_CODE = new RegExp(`^[${ALPHABET}]{${SHARED_CODE_CHARS}}$`);
const PERSONAL_CODE = new RegExp(`^[${ALPHABET}]{${PERSONAL_CODE_CHARS}}$`);

/** What comes before the code of a link, as clicks name it: `go.example` or `reach.example/l`. */
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
