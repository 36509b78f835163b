import { Type, type Static } from "@sinclair/typebox";
import { basis, skipReason, tracking } from "../../events/outreach.ts";
import type { Contact } from "../../projections/contact-state.ts";
import { named, oneOf, orNull, text, time } from "../platform/common-schemas.ts";

const evidence = {
  at: Type.Optional(Type.String({ examples: ["2026-03-02"] })),
  source: Type.Optional(text("https://shop.example/form")),
  text: Type.Optional(text("Yes, send me news (version 3)")),
};

/** Schema of a recipient in the API. The codes of their own links are never shown. */
export const recipientJson = named(
  "Recipient",
  Type.Object({
    id: orNull(text("2244994945")),
    username: orNull(text("sara_sells")),
    name: orNull(text("Sara")),
    timezone: orNull(text("Europe/Berlin")),
    fields: Type.Record(Type.String(), Type.String()),
    listed: Type.Boolean({ description: "An operator imported them." }),
    status: oneOf("open", "attempted", "in_doubt", "sent", "failed"),
    suppressed: Type.Boolean(),
    held: Type.Boolean({ description: "A reply of theirs waits for a decision." }),
    held_at: orNull(time),
    received: Type.Boolean({ description: "A message of theirs came after ours." }),
    replied: Type.Boolean(),
    seen_at: orNull(time),
    variant: orNull(text("A")),
    attempted_at: orNull(time),
    again: Type.Boolean({ description: "The next run may contact them again." }),
    skipped: Type.Array(skipReason),
    basis,
    consent: orNull(Type.Object({ basis, ...evidence })),
    tracking: Type.Object({ status: tracking, ...evidence }),
    wrote_at: orNull(time),
    position: Type.Integer({ minimum: 1, description: "Of the first event about them." }),
  }),
);

export type RecipientJson = Static<typeof recipientJson>;

export function toRecipientJson(contact: Contact): RecipientJson {
  const { fields, listed, status, suppressed, held, received, replied, again, skipped, basis, tracking } = contact;
  return {
    id: contact.id ?? null,
    username: contact.username ?? null,
    name: contact.name ?? null,
    timezone: contact.timezone ?? null,
    fields,
    listed,
    status,
    suppressed,
    held,
    held_at: contact.held_at ?? null,
    received,
    replied,
    seen_at: contact.seen_at ?? null,
    variant: contact.variant ?? null,
    attempted_at: contact.attempted_at ?? null,
    again,
    skipped: [...skipped],
    basis,
    consent: contact.consent,
    tracking,
    wrote_at: contact.wrote_at ?? null,
    position: firstPosition(contact),
  };
}

export const RECIPIENT_HEAD = ["username", "id", "basis", "tracking", "status", "skipped for"];

export function toRecipientCells({ username, id, basis, tracking, status, suppressed, held, skipped }: RecipientJson) {
  const shown = suppressed ? "suppressed" : held ? "held" : status;
  return [username ?? "", id ?? "", basis, tracking.status, shown, skipped.join(", ")];
}

/**
 * Returns the position of the first event about a recipient. No two recipients have the same one, so lists are sorted
 * by it.
 */
export function firstPosition({ positions }: Contact): number {
  return positions[0] ?? 0;
}
