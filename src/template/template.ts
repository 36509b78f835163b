import { createHash } from "node:crypto";
import { cleanValue, fieldName } from "./normalize-field.ts";
import { parseParts, TemplateError, type Part } from "./parse-parts.ts";
import { createShortLink, type LinkBase, type ShortLink } from "./short-link.ts";

/** Longest direct message that X takes, in characters. Counted in UTF-16 units, which is never fewer. */
export const MESSAGE_CHARS_MAX = 10_000;

/** Variants are named A to Z. */
const VARIANTS_MAX = 26;

/** Hex digits of a template's id: 48 bits are enough to tell apart all templates that a log will ever see. */
const TEMPLATE_ID_DIGITS = 12;

/** A parsed template. Fields are named in the form of {@link fieldName}. */
export interface Template {
  /**
   * The template's id: the first digits of the SHA-256 of its text. Each template has a variant A, so a variant is
   * named together with this id.
   */
  readonly id: string;
  /** The operator's name for it. Undefined if it is known by its id only. */
  readonly name: string | undefined;
  readonly text: string;
  readonly variants: readonly Variant[];
  /** The URL that its short links begin with. Undefined if it cannot have any. */
  readonly linkBase: LinkBase | undefined;
}

interface Variant {
  /** `A` for the first, `B` for the second … */
  readonly label: string;
  readonly parts: readonly Part[];
  /** The short links of its parts, each target once. */
  readonly links: readonly ShortLink[];
}

export interface MessageRecipient {
  /** The part of a recipient's identity that never changes. It decides the variant. */
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
 * links without a `linkBase`.
 */
export function parseTemplate(raw: string, linkBase?: LinkBase, name?: string): Template {
  const text = raw.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const spans = variantSpans(text);
  if (spans.length > VARIANTS_MAX)
    throw new TemplateError(`more than ${VARIANTS_MAX} variants`, text, spans[VARIANTS_MAX]?.start ?? 0);
  const id = createHash("sha256").update(text, "utf8").digest("hex").slice(0, TEMPLATE_ID_DIGITS);
  const variants = spans.map((span, index) => parseVariant({ id, text, linkBase }, span, index));
  return { id, name, text, variants, linkBase };
}

/** The members by which events name a template. */
export function toTemplateNames({ id, name }: Template) {
  return { template: id, ...(name === undefined ? {} : { template_name: name }) };
}

/**
 * Fields without a fallback that are neither X's own nor in `knownFields`, each once, sorted. With such a field no
 * recipient could ever get the message.
 */
export function missingPlaceholders(template: Template, knownFields: Iterable<string>): string[] {
  const known = new Set(["username", "name", ...[...knownFields].map(fieldName)]);
  const parts = template.variants.flatMap((variant) => variant.parts);
  const fields = parts.filter((part) => typeof part !== "string" && "field" in part);
  const missing = fields.filter(({ field, fallback }) => fallback === undefined && !known.has(field));
  return [...new Set(missing.map(({ field }) => field))].sort();
}

/**
 * Renders the message for one recipient, or says why there is none. A blank value counts as missing; values are taken
 * literally.
 */
export function render(
  template: Template,
  recipient: MessageRecipient,
  /** Returns the code that a link has in the message. Default: the template's code. */
  codeFor = ownCode,
): Rendered {
  return fill(template, chooseVariant(template, recipient.key), cleanValues(recipient), codeFor);
}

function ownCode({ code }: ShortLink): string {
  return code;
}

/** Renders every variant for one recipient, also those that the recipient would not get. */
export function renderAll(template: Template, recipient: MessageRecipient) {
  const values = cleanValues(recipient);
  return template.variants.map((variant) => ({ variant: variant.label, rendered: fill(template, variant, values) }));
}

function fill(
  { linkBase = "" }: Template,
  { label, parts, links }: Variant,
  values: ReadonlyMap<string, string>,
  codeFor = ownCode,
): Rendered {
  const missing = new Set<string>();
  let text = "";
  for (const part of parts) {
    if (typeof part === "string") text += part;
    else if ("target" in part) text += `${linkBase}/${codeFor(links.find(({ target }) => target === part.target)!)}`;
    else {
      const value = values.get(part.field) ?? part.fallback;
      if (value === undefined) missing.add(part.field);
      else text += value;
    }
  }
  if (missing.size > 0) return { ok: false, reason: "missing_field", missing: [...missing].sort() };
  if (text.length > MESSAGE_CHARS_MAX) return { ok: false, reason: "too_long", missing: [], length: text.length };
  return { ok: true, text, variant: label, links };
}

/**
 * Chooses by the first 32 bits of SHA-256 over the key's UTF-8, modulo the number of variants. This must never change:
 * another rule would give recipients another variant than the one the log says they got.
 */
export function chooseVariant(template: Template, key: string): Variant {
  const hash = createHash("sha256").update(key, "utf8").digest().readUInt32BE(0);
  const variant = template.variants[hash % template.variants.length];
  if (variant === undefined) throw new Error("a template has at least one variant");
  return variant;
}

function cleanValues(recipient: MessageRecipient): Map<string, string> {
  const values = new Map<string, string>();
  const { fields, name, username } = recipient;
  for (const [raw, value] of [...Object.entries(fields), ["name", name ?? ""], ["username", username]] as const) {
    const cleaned = cleanValue(value);
    if (cleaned !== undefined) values.set(fieldName(raw), cleaned);
  }
  return values;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** The place of each variant: between lines of `---`, without the white space around it. */
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

function parseVariant({ id, text, linkBase }: Omit<Template, "variants" | "name">, span: Span, index: number): Variant {
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
  return { label, parts, links };
}
