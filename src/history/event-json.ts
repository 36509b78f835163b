import { Type, type Static } from "@sinclair/typebox";
import type { Recorded } from "../../events/catalog.ts";
import { isOutcome, narrowedTo } from "../../events/dispatches.ts";
import { hideCodes } from "../networks/hide-codes.ts";
import { count, text, time } from "../platform/common-schemas.ts";
import { describeEvent } from "./words.ts";

const members = Type.Record(Type.String(), Type.Unknown());

/** An event as readers see it, with its sentence. Codes of recipients' own links are hidden. */
export const eventJson = Type.Object({
  position: count,
  id: text("01a1fd59-3b3a-7515-964c-67ff53c10ed1"),
  stream: text("outreach"),
  version: count,
  type: text("RecipientSuppressed"),
  time,
  words: text("@sara_sells was suppressed by an operator; no run contacts them again"),
  data: members,
  meta: members,
  hash: text("2838d7387b857f9772f795978111477d32dc428fb0fbcaa8abb2989343ef61de"),
});

/** Positions at which dispatches were requested. */
type Dispatches = Pick<ReadonlySet<number>, "has">;

/** `dispatches`: an outcome is narrowed to these in its sentence. */
export function toEventJson(event: Recorded, dispatches?: Dispatches): Static<typeof eventJson> {
  const { position, id, stream, version, type, time: recorded, data, meta, hash } = hideCodes(event);
  const words = describeNarrowed(event, dispatches);
  return { position, id, stream, version, type, time: recorded, words, data, meta: { ...meta }, hash };
}

/** One event as a sentence; an outcome is narrowed to these dispatches. */
export function describeNarrowed(event: Recorded, dispatches: Dispatches | undefined): string {
  if (dispatches === undefined || !isOutcome(event)) return describeEvent(event);
  return describeEvent(narrowedTo(event, dispatches) ?? event);
}
