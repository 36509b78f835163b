import type { DataOf } from "../../events/catalog.ts";
import type { NewEvent } from "../../src/log/event-log.ts";

export const PERSON: NewEvent = {
  type: "RecipientAdded",
  data: { recipient: { username: "ann" }, basis: "none", fields: {}, source: "list" },
};

/** A click of which nothing is personal, but for what `more` tells. */
export function clickOf(more: Partial<DataOf<"LinkClicked">> = {}): NewEvent {
  const link = { event: "click", domain: "go.example", short_code: "x", original_url: "https://shop.example/" };
  return { type: "LinkClicked", data: { ...link, bot: false, channels: [], ...more } };
}
