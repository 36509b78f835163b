import { createHash } from "node:crypto";
import { cleanValue, fieldName } from "./normalize-field.ts";
import { parseParts, TemplateError, type Part } from "./parse-parts.ts";
import { createShortLink, type LinkBase, type ShortLink } from "./short-link.ts";

/**
 * Maximum number of characters of a direct message that X accepts. They are counted in UTF-16 units, which are never
 * fewer.
 */
export const MESSAGE_CHARS_MAX = 10_000;

/** Maximum number of variants of a template, which are named A to Z. */
const VARIANTS_MAX = 26;

/**
 * Number of hex digits of a template's id: 48 bits are enough to tell apart all templates that a log will ever hold.
 */
const TEMPLATE_ID_DIGITS = 12;

/** A parsed template. Fields are named in the form of {@link fieldName}. */
export interface Template {
  /**
   * Id of the template: the first digits of the SHA-256 of its text. Every template has a variant A, so events name a
   * variant together with this id.
   */
  readonly id: string;
  /** The operator's name for the template. Undefined if it is known by its id only. */
  readonly name: string | undefined;
  readonly text: string;
  readonly variants: readonly Variant[];
  /** URL that the template's short links begin with. Undefined if it cannot have any. */
  readonly linkBase: LinkBase | undefined;
  /** URL that the addresses of pages to opt out begin with. Undefined if the template cannot link them. */
  readonly optOutBase: LinkBase | undefined;
}

interface Variant {
  /** Name of the variant: `A` for the first, `B` for the second … */
  readonly label: string;
  /** Text of the variant, as the template has it. */
  readonly text: string;
  readonly parts: readonly Part[];
  /** Short links in the variant's parts, each target once. */
  readonly links: readonly ShortLink[];
}

export interface MessageRecipient {
  /** Part of the recipient's identity that never changes. It decides which variant the recipient gets. */
  readonly key: string;
  readonly username: string;
  readonly name: string | undefined;
  readonly fields: Readonly<Record<string, string>>;
}

export type Rendered =
  | { readonly ok: true; readonly text: string; readonly variant: string; readonly links: readonly ShortLink[] }
  | {
      readonly ok: false;
      readonly reason: "missing_field";
      readonly missing: readonly string[];
    }
  | {
      readonly ok: false;
      readonly reason: "too_long";
      readonly missing: readonly [];
      readonly length: number;
    };

/**
 * Parses a template. Throws {@link TemplateError} for malformed braces, for variants that could not be sent, and for
 * links without a `linkBase` or an `optOutBase`.
 */
export function parseTemplate(raw: string, linkBase?: LinkBase, name?: string, optOutBase?: LinkBase): Template {
  const text = raw.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const spans = variantSpans(text);
  if (spans.length > VARIANTS_MAX)
    throw new TemplateError(`more than ${VARIANTS_MAX} variants`, text, spans[VARIANTS_MAX]?.start ?? 0);
  const id = createHash("sha256").update(text, "utf8").digest("hex").slice(0, TEMPLATE_ID_DIGITS);
  const variants = spans.map((span, index) => parseVariant({ id, text, linkBase, optOutBase }, span, index));
  return { id, name, text, variants, linkBase, optOutBase };
}

/** Returns the members by which events name a template. */
export function toTemplateNames({ id, name }: Template) {
  return { template: id, ...(name === undefined ? {} : { template_name: name }) };
}

/**
 * Returns the fields that would keep the message from every recipient: they have no fallback, and are neither X's own
 * nor in `knownFields`. Each is listed once, sorted.
 */
export function missingPlaceholders(template: Template, knownFields: Iterable<string>): string[] {
  const known = new Set(["username", "name", ...[...knownFields].map(fieldName)]);
  const missing = listPlaceholders(template).filter(
    ({ field, fallback }) => fallback === undefined && !known.has(field),
  );
  return [...new Set(missing.map(({ field }) => field))].sort();
}

/** Returns the template fields that the messages use, each once, sorted; without X's own name and handle. */
export function fieldsUsed(template: Template): string[] {
  const own = new Set(["username", "name"]);
  return [...new Set(listPlaceholders(template).map(({ field }) => field))].filter((field) => !own.has(field)).sort();
}

function listPlaceholders({ variants }: Template) {
  return variants.flatMap((variant) => variant.parts).filter((part) => typeof part !== "string" && "field" in part);
}

/**
 * Renders the template's message for one recipient, or says why there is none. A blank value counts as missing; values
 * are taken literally.
 */
export function render(
  template: Template,
  recipient: MessageRecipient,
  /** Returns the code that a short link has in this recipient's message. Default: the template's shared code. */
  codeFor = ownCode,
  /** Code of the recipient's page to opt out. Default: a placeholder, which no page has. */
  optOutCode = OPT_OUT_PLACEHOLDER,
): Rendered {
  return fill(template, chooseVariant(template, recipient.key), recipient, codeFor, optOutCode);
}

/**
 * Returns why {@link render} gives no message; undefined if it gives one. Fields in `later` will be known before
 * sending, so they are not missing. Builds no text if every variant surely fits.
 */
export function findRenderFault(
  template: Template,
  recipient: MessageRecipient,
  later: readonly string[],
): Extract<Rendered, { ok: false }> | undefined {
  let longest = Math.max(recipient.username.length, recipient.name?.length ?? 0);
  const { fields } = recipient;
  for (const field of Object.keys(fields)) longest = Math.max(longest, fields[field]!.length);
  if (template.variants.every((variant) => isSurelyRendered(template, variant, { recipient, later, longest }))) {
    return undefined;
  }
  const rendered = render(template, recipient);
  if (rendered.ok) return undefined;
  const missing = rendered.missing.filter((field) => !later.includes(field));
  return rendered.reason === "missing_field" ? (missing.length === 0 ? undefined : { ...rendered, missing }) : rendered;
}

/**
 * True if the variant certainly gives the recipient a message: no field is missing, and the text cannot be too long.
 * Otherwise false, and only rendering shows the result. `longest`: length of the recipient's longest value.
 */
function isSurelyRendered(
  { linkBase = "", optOutBase = "" }: Template,
  { parts, links }: Variant,
  { recipient, later, longest }: { recipient: MessageRecipient; later: readonly string[]; longest: number },
): boolean {
  let charsMax = 0;
  for (const part of parts) {
    if (typeof part === "string") charsMax += part.length;
    else if ("optOut" in part) charsMax += optOutBase.length + 1 + OPT_OUT_PLACEHOLDER.length;
    else if ("target" in part) charsMax += linkBase.length + 1 + longestCode(links);
    else {
      const { field, fallback } = part;
      if (fallback === undefined && !later.includes(field) && findValue(recipient, field) === undefined) return false;
      charsMax += Math.max(longest, fallback?.length ?? 0);
    }
  }
  return charsMax <= MESSAGE_CHARS_MAX;
}

function longestCode(links: readonly ShortLink[]): number {
  return links.reduce((longest, { code }) => Math.max(longest, code.length), 0);
}

/** Text that previews show in place of a code. It is as long as a code, so that lengths are right. */
const OPT_OUT_PLACEHOLDER = "YOUR-OWN-CODE";

/** True if the template's variant links the recipient's page to opt out. */
export function linksOptOut({ parts }: Variant): boolean {
  return parts.some((part) => typeof part !== "string" && "optOut" in part);
}

/**
 * Removes the address of the page to opt out from a message that was rendered without a recipient's code. Clicks are
 * counted only on the other links.
 */
export function withoutOptOut({ optOutBase }: Template, text: string): string {
  return optOutBase === undefined ? text : text.replaceAll(`${optOutBase}/${OPT_OUT_PLACEHOLDER}`, " ");
}

function ownCode({ code }: ShortLink): string {
  return code;
}

/** Renders every variant of a template for one recipient, also those that the recipient would not get. */
export function renderAll(template: Template, recipient: MessageRecipient) {
  return template.variants.map((variant) => ({ variant: variant.label, rendered: fill(template, variant, recipient) }));
}

function fill(
  { linkBase = "", optOutBase = "" }: Template,
  { label, parts, links }: Variant,
  recipient: MessageRecipient,
  codeFor = ownCode,
  optOutCode = OPT_OUT_PLACEHOLDER,
): Rendered {
  const missing = new Set<string>();
  let text = "";
  for (const part of parts) {
    if (typeof part === "string") text += part;
    else if ("optOut" in part) text += `${optOutBase}/${optOutCode}`;
    else if ("target" in part) text += `${linkBase}/${codeFor(links.find(({ target }) => target === part.target)!)}`;
    else {
      const value = findValue(recipient, part.field) ?? part.fallback;
      if (value === undefined) missing.add(part.field);
      else text += value;
    }
  }
  if (missing.size > 0) return { ok: false, reason: "missing_field", missing: [...missing].sort() };
  if (text.length > MESSAGE_CHARS_MAX) return { ok: false, reason: "too_long", missing: [], length: text.length };
  return { ok: true, text, variant: label, links };
}

/**
 * Chooses a recipient's variant by the first 32 bits of SHA-256 over the key's UTF-8, modulo the number of variants.
 * This must never change, because recipients would get another variant than the one in the log.
 */
export function chooseVariant(template: Template, key: string): Variant {
  if (template.variants.length === 1) return template.variants[0]!;
  const hash = createHash("sha256").update(key, "utf8").digest().readUInt32BE(0);
  const variant = template.variants[hash % template.variants.length];
  if (variant === undefined) throw new Error("a template has at least one variant");
  return variant;
}

/** Returns a field's value for a message. The name and username that the network knows come before fields of a list. */
function findValue({ fields, name, username }: MessageRecipient, field: string): string | undefined {
  const own = field === "name" ? name : field === "username" ? username : undefined;
  const known = own === undefined ? undefined : cleanValue(own);
  if (known !== undefined) return known;
  let found: string | undefined;
  // Two columns may name the same field in different spellings. The last one with a visible value counts.
  for (const raw of Object.keys(fields)) if (fieldName(raw) === field) found = cleanValue(fields[raw]!) ?? found;
  return found;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Finds the place of each variant in a template's text: between lines of `---`, without the white space around it. */
function variantSpans(text: string): Span[] {
  const spans: Span[] = [];
  let start = 0;
  for (const line of text.matchAll(/^---[ \t]*$/gm)) {
    spans.push(trimmed(text, start, line.index));
    start = line.index + line[0].length;
  }
  spans.push(trimmed(text, start, text.length));
  return spans;
}

function trimmed(text: string, start: number, end: number): Span {
  const body = text.slice(start, end);
  const from = start + body.length - body.trimStart().length;
  return { start: from, end: Math.max(from, start + body.trimEnd().length) };
}

function parseVariant(
  { id, text, linkBase, optOutBase }: Omit<Template, "variants" | "name">,
  span: Span,
  index: number,
): Variant {
  const { start, end } = span;
  if (start === end) throw new TemplateError("a variant without text", text, start);
  const parts = parseParts(text, start, end);
  const literal = parts.reduce((sum, part) => sum + (typeof part === "string" ? part.length : 0), 0);
  if (literal > MESSAGE_CHARS_MAX)
    throw new TemplateError(`a variant longer than X's ${MESSAGE_CHARS_MAX} characters`, text, start);
  const label = String.fromCharCode("A".charCodeAt(0) + index);
  const targets = new Set(parts.flatMap((part) => (typeof part !== "string" && "target" in part ? [part.target] : [])));
  if (targets.size > 0 && linkBase === undefined)
    throw new TemplateError("{{link …}} needs LINK_BASE, or REDIRECTS=on", text, start);
  const links = [...targets].map((target) => createShortLink(linkBase!, id, label, target));
  const variant = { label, text: text.slice(start, end), parts, links };
  if (optOutBase === undefined && linksOptOut(variant))
    throw new TemplateError("{{optout}} needs PUBLIC_URL, an address that recipients can open", text, start);
  return variant;
}
