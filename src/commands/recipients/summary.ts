import type { ImportedRow } from "../../outreach/recipients-file.ts";
import { printable } from "../table.ts";

/** Columns named at the most: a file of JSON objects may have others in each. */
const NAMED_MAX = 50;

/** What an import says of those to whom nobody writes; nothing where there are none. */
export function consentLine(unagreed: number, requireConsent: boolean): string {
  if (unagreed === 0) return "";
  const then = requireConsent
    ? "and nobody writes to them while REQUIRE_CONSENT is true (see basis in the help)"
    : "and are written to all the same, since REQUIRE_CONSENT is false";
  return `${unagreed} of them without consent: their basis is none or missing, ${then}\n`;
}

/** The columns that became template fields; nothing where none did. */
export function fieldsLine(rows: readonly ImportedRow[]): string {
  const names = new Set<string>();
  for (const { recipient } of rows) for (const name of Object.keys(recipient.fields)) names.add(name);
  if (names.size === 0) return "";
  const more = names.size > NAMED_MAX ? ` and ${names.size - NAMED_MAX} more` : "";
  return `template fields: ${[...names].slice(0, NAMED_MAX).map(printable).join(", ")}${more}\n`;
}
