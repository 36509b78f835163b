import { fieldName, fieldNameFault } from "./normalize-field.ts";
import { toTarget } from "./short-link.ts";

/** Part of a template: a literal text, or a placeholder for a field, for a short link, or for a page to opt out. */
export type Part = string | Field | Target | OptOut;

interface Field {
  readonly field: string;
  readonly fallback: string | undefined;
}

/** Part of a template that becomes a short link. `target` is an absolute http or https URL. */
interface Target {
  readonly target: string;
}

/** Part of a template that becomes the address of the recipient's own page to opt out. */
interface OptOut {
  readonly optOut: true;
}

/** Thrown for a template that cannot be used. `line` and `column` are from 1, as an editor shows them. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
  readonly line: number;
  readonly column: number;
  constructor(problem: string, text: string, offset: number) {
    const before = text.slice(0, offset).split("\n");
    const line = before.length;
    // Counts code points and not UTF-16 units, so that most emojis before the fault count as one column.
    const column = Array.from(before.at(-1) ?? "").length + 1;
    super(`line ${line}, column ${column}: ${problem}`);
    this.line = line;
    this.column = column;
  }
}

/** Parses a template's `text` from `start` to `end` into parts. Errors give places in the whole text. */
export function parseParts(text: string, start: number, end: number): Part[] {
  const parts: Part[] = [];
  let at = start;
  while (at < end) {
    const open = before(end, text.indexOf("{{", at));
    const stray = text.slice(at, open).indexOf("}}");
    if (stray !== -1) throw new TemplateError("}} without a {{ before it", text, at + stray);
    if (open > at) parts.push(text.slice(at, open));
    if (open === end) break;
    const close = closingBraces(text, open, end);
    parts.push(placeholder(text, open, close));
    at = close + 2;
  }
  return parts;
}

function before(end: number, found: number): number {
  return found === -1 || found > end ? end : found;
}

/** Returns the offset of the `}}` that ends the placeholder opened at `open`. */
function closingBraces(text: string, open: number, end: number): number {
  const close = text.indexOf("}}", open + 2);
  const lineEnd = before(end, text.indexOf("\n", open));
  if (close === -1 || close >= lineEnd) throw new TemplateError("{{ is not closed by }} on its line", text, open);
  // A third brace is an error too, because the message would contain it: `{{{name}}}` would send a brace.
  if (text[close + 2] === "}") throw new TemplateError("one } too many", text, close + 2);
  return close;
}

function placeholder(text: string, open: number, close: number): Part {
  const inner = text.slice(open + 2, close);
  if (/[{}]/.test(inner)) throw new TemplateError("a brace inside a placeholder", text, open);
  const link = LINK.exec(inner);
  if (link !== null) {
    const target = toTarget(link[1]!);
    if (target === undefined) throw new TemplateError("{{link …}} needs an http or https URL", text, open);
    return { target };
  }
  const [rawName = "", ...rest] = inner.split("|");
  const field = fieldName(rawName);
  if (field === OPT_OUT && rest.length > 0) throw new TemplateError("{{optout}} takes no fallback", text, open);
  if (field === OPT_OUT) return { optOut: true };
  if (field === "") throw new TemplateError("a placeholder without a name", text, open);
  const fault = fieldNameFault(field);
  if (fault !== undefined) throw new TemplateError(fault, text, open);
  if (rest.length === 0) return { field, fallback: undefined };
  const fallback = rest.join("|").trim();
  if (fallback === "")
    throw new TemplateError(`{{${field}|}} has an empty fallback: it would leave a hole`, text, open);
  return { field, fallback };
}

/**
 * Name of the placeholder for the address of the recipient's opt-out page. A field of a recipient cannot have this
 * name.
 */
const OPT_OUT = "optout";

/**
 * Matches a placeholder for a short link, `{{link https://shop.example/offer}}`. `{{link}}` and `{{link|there}}` are a
 * field of that name.
 */
const LINK = /^\s*link\s+([^\s|].*?)\s*$/;
