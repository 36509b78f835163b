import { isDeepStrictEqual } from "node:util";
import { consentAfterAll, findMissingEvidence, isConsentLost, NO_CONSENT } from "../../projections/consent.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { newContact, type Contact, type Contacts } from "../../projections/contact-state.ts";
import { contentAfterImport } from "../../projections/contacts.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { render, type Template } from "../template/template.ts";
import type { ImportedRow } from "./file/unique-recipients.ts";

/** Number of rows that one step of a preview judges, which takes a millisecond. */
const STEP_ROWS = 1_000;

/** Number of recipients that a preview shows in the form in which an import would store them. */
const FINISHED_SHOWN = 3;

/**
 * Counts the rows that an import would add, update or leave as they are, and returns the first recipients as it would
 * store them. Writes nothing.
 */
export function* previewImport(contacts: () => Contacts, rows: readonly ImportedRow[], template: Template | undefined) {
  const lacking = new Map<string, LackingEvidence>();
  const counts = { added: 0, updated: 0, unchanged: 0, without_consent: 0, without_evidence: 0, revoked: 0 };
  for (const [index, row] of rows.entries()) {
    const { recipient, withdrawals = [] } = row;
    if (index % STEP_ROWS === STEP_ROWS - 1) yield;
    const before = findContact(contacts(), recipient);
    const { consents_for: _, ...contact } = before ?? newContact();
    const withdrawn = { ...contact, ...consentAfterAll(before ?? NO_CONSENT, withdrawals) };
    const after = contentAfterImport(withdrawn, recipient);
    counts[before?.listed !== true ? "added" : isUnchanged(before, recipient, after) ? "unchanged" : "updated"]++;
    const consent = { ...after, inbound: before?.inbound ?? false };
    const missing = findMissingEvidence(consent);
    if (missing[0] === "basis") counts.without_consent++;
    else if (missing[0] !== undefined) {
      counts.without_evidence++;
      addLacking(lacking, missing, row);
    }
    if (before !== undefined && isConsentLost(before, consent, recipient)) counts.revoked++;
  }
  return {
    ...counts,
    lacking_evidence: [...lacking.values()],
    finished: rows.slice(0, FINISHED_SHOWN).map((row) => finish(row, template)),
  };
}

/** Recipients with a consent that lacks the same evidence. */
interface LackingEvidence {
  readonly missing: string[];
  readonly count: number;
  /**
   * The first recipients with a consent that lacks this evidence, at most {@link LACKING_SHOWN}, each with its line in
   * the imported file.
   */
  readonly first: { readonly line: number; readonly id?: string; readonly username?: string }[];
}

/** Maximum number of recipients that a preview names for each combination of missing evidence of consent. */
const LACKING_SHOWN = 20;

function addLacking(
  lacking: Map<string, LackingEvidence>,
  missing: readonly string[],
  { line, recipient: { id, username } }: ImportedRow,
): void {
  const { count, first } = lacking.get(missing.join()) ?? { count: 0, first: [] };
  const more = count < LACKING_SHOWN ? [{ line, ...omitUndefined({ id, username }) }] : [];
  lacking.set(missing.join(), { missing: [...missing], count: count + 1, first: [...first, ...more] });
}

type Content = ReturnType<typeof contentAfterImport>;

function isUnchanged(before: Contact, { id, username }: ImportedRow["recipient"], after: Content): boolean {
  const { name, timezone, fields, basis, consent, tracking, consents_for } = before;
  const isNamedAlike = (id ?? before.id) === before.id && (username ?? before.username) === before.username;
  const content = { name, timezone, fields, basis, consent, tracking, ...omitUndefined({ consents_for }) };
  return isNamedAlike && isDeepStrictEqual(content, after);
}

/** Returns a recipient as the file describes them, with the message that they would get now. */
function finish({ line, recipient }: ImportedRow, template: Template | undefined) {
  const { id, username, name, basis, consent_at, consent_source, fields } = recipient;
  const key = id ?? `@${username?.toLowerCase()}`;
  const rendered = template && render(template, { key, username: username ?? "", name, fields });
  return {
    line,
    ...omitUndefined({ id, username, name, basis, consent_at, consent_source }),
    fields: { ...fields },
    ...(rendered?.ok === true && { message: rendered.text }),
    ...(rendered?.ok === false && { missing: [...rendered.missing] }),
  };
}
