import { Type } from "@sinclair/typebox";
import type { Contact, Contacts } from "../../projections/contacts.ts";
import { count, orNull } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/counts-and-lists.ts";
import { operation, pageInput, refusal } from "../platform/operation.ts";
import { inTimeSlices } from "../platform/time-slices.ts";
import { forgetPerson } from "../privacy/forget.ts";
import {
  certificate,
  describeErased,
  erased,
  erasureInput,
  NOT_REACHED,
  toErasedJson,
  type ErasureContext,
} from "../privacy/privacy.operations.ts";
import { asOf, asOfInput, describeMomentJson, toMomentJson, type LogReader } from "../projector/log-reader.ts";
import { findNamed, recipientName } from "./resolve-recipient.ts";
import { firstPosition, RECIPIENT_HEAD, recipientJson, toRecipientCells, toRecipientJson } from "./recipient-json.ts";
import { suppress, type SuppressDeps } from "./suppress.ts";

/** Recipients of one answer. */
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
    ...pageInput(RECIPIENTS_SHOWN, RECIPIENTS_SHOWN_MAX),
    ...asOfInput,
  },
  output: { recipients: Type.Array(recipientJson), count, next: orNull(count), ...asOf },
  list: "recipients",
  async run({ at }: LogReader, { held = false, limit = RECIPIENTS_SHOWN, after = 0, as_of }) {
    const found = await at(as_of, "contacts");
    const matching = await inTimeSlices(findMatching(found.states.contacts, held));
    const rest = matching.filter((contact) => firstPosition(contact) > after);
    const page = rest.slice(0, limit);
    return {
      recipients: page.map(toRecipientJson),
      count: matching.length,
      next: rest.length > limit ? firstPosition(page.at(-1)!) : null,
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

/** Those that match, in the order of their first events. */
function* findMatching({ people }: Contacts, isHeldOnly: boolean) {
  const found: Contact[] = [];
  for (const contact of people.values()) {
    if (!isHeldOnly || contact.held) found.push(contact);
    yield;
  }
  return found.sort((one, other) => firstPosition(one) - firstPosition(other));
}

export const suppressRecipient = operation({
  name: "recipients suppress",
  id: "suppressRecipient",
  tag: "outreach",
  access: ["token", "recipients"],
  summary: "Suppress a recipient for good.",
  description:
    "They never get a message again. An unknown handle can be suppressed too: X is asked for its id, and without an answer it holds for any recipient with that handle. A repeat changes nothing.",
  personalRead: false,
  input: { recipient: recipientName },
  positional: ["recipient"],
  output: { known: Type.Boolean({ description: "False: no recipient of that name is known yet." }) },
  async run(context: SuppressDeps, { recipient }, caller) {
    const { isKnown } = await suppress(context, recipient, caller);
    return { known: isKnown };
  },
  text: ({ known }) =>
    `The recipient never gets a message again${known ? "" : "; no recipient of that name is known yet"}.`,
  examples: ["@sara_sells"],
});

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
  refusals: {
    unknown_recipient: refusal("not_found", "No recipient has that name: they were erased already, or never recorded."),
  },
  confirm: ({ recipient }) => `Erase ${recipient} for good? This cannot be undone.`,
  isSlow: true,
  async run(context: ErasureContext, { recipient, ...reason }, metadata) {
    const find = (contacts: Contacts) => findNamed(contacts, recipient);
    const forgotten = await forgetPerson(context, find, { metadata, signal: context.stopping, reason });
    return forgotten === undefined ? "unknown_recipient" : toErasedJson(forgotten);
  },
  text: describeErased,
  file: certificate,
  examples: ["@sara_sells", "@sara_sells --ground objection --yes"],
});
