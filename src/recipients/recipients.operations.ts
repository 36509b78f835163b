import { Type } from "@sinclair/typebox";
import { basis, skipReason, tracking, type SkipReason } from "../../events/outreach.ts";
import { consentFor, NO_CONSENT } from "../../projections/consent.ts";
import { canRewind } from "../../projections/all.ts";
import { toRecipient, type Contact, type Contacts } from "../../projections/contact-state.ts";
import { contactWithIdAt, peopleAt, type People } from "../../projections/rewind-contacts.ts";
import { describeConsent } from "../history/sentences/outreach.ts";
import { formatSentence } from "../history/sentences/sentence-parts.ts";
import type { StateContext } from "../log/event-log.ts";
import { count, orNull } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/format-numbers-and-lists.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { operation, pageInput, refusal, refuse } from "../platform/operation.ts";
import { inTimeSlices } from "../platform/work-in-time-slices.ts";
import { forgetPerson } from "../privacy/forget-person-or-address.ts";
import {
  certificate,
  describeErased,
  erased,
  erasureInput,
  NOT_REACHED,
  toErasedJson,
} from "../privacy/forget-clicks-of-address.operations.ts";
import type { WriteContext } from "../privacy/log-context-types.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  MomentFolding,
  toMomentJson,
  type LogReader,
} from "../projector/operation-states-as-of.ts";
import { discloseRecipient } from "../privacy/record-personal-data-read.ts";
import { showOnOneLine } from "../template/show-invisible-characters.ts";
import { allowRetry } from "./allow-retry.ts";
import type { FilePreview } from "./file/preview-columns-and-dates.ts";
import { consentMembers, isFault, parseConsent } from "./parse-consent.ts";
import type { previewImport } from "./preview-import.ts";
import { recordConsent, type ConsentContext } from "./record-consent.ts";
import { release } from "./release-held-recipient.ts";
import { findNamed, recipientName } from "./resolve-recipient.ts";
import { firstPosition, RECIPIENT_HEAD, recipientJson, toRecipientCells, toRecipientJson } from "./recipient-json.ts";
import { suppress, type SuppressContext } from "./suppress.ts";

/** Default number of recipients in one response. */
const RECIPIENTS_SHOWN = 100;
const RECIPIENTS_SHOWN_MAX = 1_000;

export const listRecipients = operation({
  name: "recipients list",
  id: "listRecipients",
  tag: "outreach",
  access: ["session", "read"],
  summary: "List the known recipients, with their status.",
  description: "In the order in which the log first names them.",
  personalRead: "recipients",
  input: {
    held: Type.Optional(Type.Boolean({ description: "Only those whose reply waits for a decision" })),
    suppressed: Type.Optional(Type.Boolean({ description: "Only those who never get a message again" })),
    status: Type.Optional(
      Type.Union(recipientJson.properties.status.anyOf, { title: "name", description: "Only those of this status" }),
    ),
    skipped: Type.Optional(
      Type.Union(skipReason.anyOf, { title: "reason", description: "Only those that a run skipped for this reason" }),
    ),
    ...pageInput(RECIPIENTS_SHOWN, RECIPIENTS_SHOWN_MAX),
    ...asOfInput,
  },
  output: { recipients: Type.Array(recipientJson), count, next: orNull(count), ...asOf },
  list: "recipients",
  async run(reader: LogReader, { limit = RECIPIENTS_SHOWN, after = 0, as_of, ...filter }) {
    const { people, found } = await findPeopleAt(reader, as_of);
    const matching = await inTimeSlices(findMatching(people, filter));
    const rest = matching.filter(({ first }) => first > after);
    const page = rest.slice(0, limit);
    const present = people();
    return {
      recipients: page.flatMap(({ key }) => present.get(key) ?? []).map(toRecipientJson),
      count: matching.length,
      next: rest.length > limit ? page.at(-1)!.first : null,
      as_of: toMomentJson(found),
    };
  },
  discloses: ({ recipients }) => ({ records: recipients.length }),
  table: ({ recipients }) => ({ head: RECIPIENT_HEAD, rows: recipients.map(toRecipientCells) }),
  text({ count: all, next, as_of }) {
    const more = next === null ? "" : `; --after ${next} lists more`;
    return `(${countInWords(all, "recipient")}${more}; ${describeMomentJson(as_of)})\n`;
  },
  examples: ["--held", "--as-of 2026-11-21"],
});

interface RecipientFilter {
  readonly held?: boolean;
  readonly suppressed?: boolean;
  readonly status?: Contact["status"];
  readonly skipped?: SkipReason;
}

/**
 * Finds a moment of the past. `now` returns the present contacts if they hold the changes since that moment; the caller
 * can then restore single contacts instead of the whole state.
 */
async function findRewindable({ at, held }: LogReader, asOf: string | undefined) {
  if (asOf === undefined || held?.isFolded("contacts") !== true) return undefined;
  const found = await at(asOf);
  const { position } = found;
  const holdsChanges = () => canRewind("contacts", held.state("contacts"), position);
  const now = (): Contacts => {
    // An import during a search may have dropped the older values of contacts that the moment needs.
    if (!holdsChanges()) throw new MomentFolding(position);
    return held.state("contacts");
  };
  return held.position >= position && holdsChanges() ? { found, now } : undefined;
}

/** Finds the recipients known at a moment. */
async function findPeopleAt(reader: LogReader, asOf: string | undefined) {
  const rewindable = await findRewindable(reader, asOf);
  const found = rewindable?.found ?? (await reader.at(asOf, "contacts"));
  const then = rewindable && peopleAt(rewindable.now, found.position);
  return { found, people: (): People => then ?? found.states.contacts.people };
}

/** Finds the recipient that an operator named, as they were at a moment. */
async function findOneAt(reader: LogReader, asOf: string | undefined, name: string) {
  const { found: past, now } = (await findRewindable(reader, asOf)) ?? {};
  const known = past && now && contactWithIdAt(now(), name, past.position);
  if (past !== undefined && known !== undefined) return { found: past, contact: known };
  const found = await reader.at(asOf, "contacts");
  return { found, contact: findNamed(found.states.contacts, name) };
}

/**
 * Pauses at each contact, and at its end returns the keys of the recipients that match the filter, in the order of
 * their first events. Returns keys because contacts may change during the pauses.
 */
function* findMatching(people: () => People, { held, suppressed, status, skipped }: RecipientFilter) {
  const found: { readonly first: number; readonly key: string }[] = [];
  for (const [key, contact] of people()) {
    const isMatch =
      (held !== true || contact.held) &&
      (suppressed !== true || contact.suppressed) &&
      (status === undefined || contact.status === status) &&
      (skipped === undefined || contact.skipped.includes(skipped));
    if (isMatch) found.push({ first: firstPosition(contact), key });
    yield;
  }
  return found.sort((one, other) => one.first - other.first);
}

/** Refusal of a request for a recipient that the log does not know. */
export const UNKNOWN_RECIPIENT = refusal(
  "not_found",
  "No recipient has that name: they were erased already, or never recorded.",
);

export const showRecipient = operation({
  name: "recipients show",
  id: "showRecipient",
  tag: "outreach",
  access: ["session", "read"],
  summary: "Show one recipient, with their status and consent.",
  description: "At a moment before they were first named, there is no such recipient.",
  personalRead: "recipient",
  input: { recipient: recipientName, ...asOfInput },
  positional: ["recipient"],
  output: {
    recipient: recipientJson,
    words: Type.String({ description: "Their consent in a sentence.", examples: ["Opted in; tracking unknown."] }),
    ...asOf,
  },
  refusals: { unknown_recipient: UNKNOWN_RECIPIENT },
  async run(reader: LogReader, { recipient, as_of }) {
    const { found, contact } = await findOneAt(reader, as_of, recipient);
    if (contact === undefined) return "unknown_recipient";
    const words = formatSentence(describeConsent(contact));
    return { recipient: toRecipientJson(contact), words, as_of: toMomentJson(found) };
  },
  discloses: ({ recipient: { id, username } }) => ({
    recipient: omitUndefined({ id: id ?? undefined, username: username ?? undefined }),
    records: 1,
  }),
  table: ({ recipient }) => ({ head: RECIPIENT_HEAD, rows: [toRecipientCells(recipient)] }),
  text: ({ words, as_of }) => `${showOnOneLine(words)}\n(${describeMomentJson(as_of)})\n`,
  examples: ["@sara_sells", "@sara_sells --as-of 2026-11-21"],
});

export const suppressRecipient = operation({
  name: "recipients suppress",
  id: "suppressRecipient",
  tag: "outreach",
  access: ["token", "recipients"],
  summary: "Suppress a recipient for good.",
  description:
    "They never get a message again. An unknown handle can be suppressed too: the service asks X for its id; without an answer, any recipient with that handle is suppressed. A repeat changes nothing.",
  personalRead: false,
  input: { recipient: recipientName },
  positional: ["recipient"],
  output: { known: Type.Boolean({ description: "False: no recipient of that name is known yet." }) },
  async run(context: SuppressContext, { recipient }, caller) {
    const { isKnown } = await suppress(context, recipient, caller);
    return { known: isKnown };
  },
  text: ({ known }) =>
    `The recipient never gets a message again${known ? "" : "; no recipient of that name is known yet"}.`,
  examples: ["@sara_sells"],
});

const SUPPRESSED = refusal("conflict", "This recipient is suppressed: no message is sent.");

export const retryRecipient = operation({
  name: "recipients retry",
  id: "retryRecipient",
  tag: "outreach",
  access: ["token", "recipients"],
  summary: "Allow a retry after a failed message.",
  description: "The next run of the campaign may contact the recipient again, if nothing else rules it out.",
  personalRead: false,
  input: {
    recipient: recipientName,
    campaign: Type.Optional(
      Type.String({
        title: "name",
        maxLength: 40,
        description: "The campaign whose message failed; default: that of the newest message",
        examples: ["spring"],
      }),
    ),
  },
  positional: ["recipient"],
  output: { status: Type.Literal("open") },
  refusals: {
    unknown_recipient: UNKNOWN_RECIPIENT,
    suppressed: SUPPRESSED,
    nothing_to_retry: refusal("conflict", "This recipient has no failed message to retry."),
  },
  async run(context: StateContext, given, caller) {
    return (await allowRetry(context, given, caller)) ?? { status: "open" as const };
  },
  text: () => "The next run may contact the recipient again.",
  examples: ["@sara_sells", "@sara_sells --campaign spring"],
});

export const releaseRecipient = operation({
  name: "recipients release",
  id: "releaseRecipient",
  tag: "outreach",
  access: ["token", "recipients"],
  summary: "Release a recipient whose reply was held.",
  description:
    "For a reply that is no opt-out: the next run may contact the recipient, if nothing else rules it out. If the reply is an opt-out, suppress the recipient. A repeat changes nothing.",
  personalRead: false,
  input: { recipient: recipientName },
  positional: ["recipient"],
  output: { held: Type.Literal(false) },
  refusals: { unknown_recipient: UNKNOWN_RECIPIENT, suppressed: SUPPRESSED },
  async run(context: StateContext, { recipient }, caller) {
    return (await release(context, recipient, caller)) ?? { held: false as const };
  },
  text: () => "The next run may contact the recipient.",
  examples: ["@sara_sells"],
});

export const recordRecipientConsent = operation({
  name: "recipients consent",
  id: "recordConsent",
  tag: "outreach",
  access: ["token", "recipients"],
  summary: "Record a recipient's consent, with its evidence.",
  description:
    "Records the basis, the tracking or both, each with its evidence: when, where, and to which wording. Evidence without its basis or tracking is refused; new evidence replaces the former completely. Values that are not given stay. A recipient who wrote first keeps the basis `dm_first`. Revoking granted tracking erases the recorded clicks on their own links. A repeat changes nothing.",
  personalRead: "recipient",
  input: { recipient: recipientName, ...consentMembers },
  positional: ["recipient"],
  output: {
    known: Type.Boolean({ description: "False: no recipient of that name was known." }),
    basis: { ...basis, description: "For the campaign or topic that the record names, else for all." },
    tracking,
  },
  refusals: { unusable_consent: refusal("invalid", "Nothing was recorded: {why}.", "errors") },
  async run(context: ConsentContext, { recipient, ...given }, caller) {
    const record = parseConsent((member) => given[member], context.clock());
    if (isFault(record)) return refuseConsent(record.reason, `/${record.member}`);
    if (Object.keys(record).length === 0) return refuseConsent("neither basis nor tracking is given", "");
    const { isKnown, contact } = await recordConsent(context, recipient, record, caller);
    const { basis: ground, tracking: clicks } = consentFor(contact ?? NO_CONSENT, [record.consent_for]);
    return { known: isKnown, basis: ground, tracking: clicks.status };
  },
  discloses(_, { recipient }, { projector }) {
    const contact = findNamed(projector.state("contacts"), recipient);
    return contact === undefined ? "nothing" : discloseRecipient(toRecipient(contact));
  },
  text: ({ known, basis: ground, tracking: status }) =>
    `The consent is recorded. Basis: ${ground}; tracking: ${status}.${known ? "" : " No recipient of that name is known yet."}`,
  examples: ["@sara_sells --basis opt_in --consent-at 2026-03-02", "1001 --tracking denied --tracking-source mail"],
});

function refuseConsent(why: string, path: string) {
  return refuse("unusable_consent", { why }, { errors: [{ path, message: why }] });
}

export const forgetRecipient = operation({
  name: "recipients forget",
  id: "forgetRecipient",
  tag: "outreach",
  access: ["token", "admin"],
  summary: "Erase a recipient.",
  description: `Deletes the keys of their personal data in the log, and of stored answers that name them. They never get a message again. ${NOT_REACHED}`,
  personalRead: false,
  input: { recipient: recipientName, ...erasureInput },
  positional: ["recipient"],
  output: erased,
  refusals: { unknown_recipient: UNKNOWN_RECIPIENT },
  confirm: ({ recipient }) => `Erase ${recipient} for good? This cannot be undone.`,
  isSlow: true,
  async run(context: WriteContext, { recipient, ...reason }, metadata) {
    const find = (contacts: Contacts) => findNamed(contacts, recipient);
    const forgotten = await forgetPerson(context, find, { metadata, signal: context.stopping, reason });
    return forgotten === undefined ? "unknown_recipient" : toErasedJson(forgotten);
  },
  text: describeErased,
  file: certificate,
  examples: ["@sara_sells", "@sara_sells --ground objection --yes"],
});

type PreviewedRows = ReturnType<typeof previewImport> extends Generator<void, infer Found> ? Found : never;

/** Preview of an import of recipients: what the file's columns become, and what the import would do. */
export type ImportPreview = FilePreview & PreviewedRows;
