import type { DataOf } from "../../../events/event-types-and-codec.ts";
import type { Recipient } from "../../../events/outreach.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";

/** Makes the event of an imported person who opted in, except as `more` says. */
export function addedOf(
  recipient: Recipient,
  more: Partial<DataOf<"RecipientAdded">> = {},
): NewEvent<"RecipientAdded"> {
  return { type: "RecipientAdded", data: { recipient, basis: "opt_in", fields: {}, source: "list", ...more } };
}

export const PERSON: NewEvent = addedOf({ username: "ann" }, { basis: "none" });

/** Makes the event of a click without personal data, except as `more` says. */
export function clickOf(more: Partial<DataOf<"LinkClicked">> = {}): NewEvent<"LinkClicked"> {
  const link = { event: "click", domain: "go.example", short_code: "x", original_url: "https://shop.example/" };
  return { type: "LinkClicked", data: { ...link, bot: false, channels: [], ...more } };
}
