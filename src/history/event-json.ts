import { Type, type Static } from "@sinclair/typebox";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { isOutcome, narrowedTo, type RequestPositions } from "../../events/dispatches-requested-by-events.ts";
import { hideCodes } from "../networks/hide-personal-codes.ts";
import { count, named, text, time } from "../platform/common-schemas.ts";
import { describeEvent } from "./event-sentences.ts";

/** Schema of an event in the API, with its sentence. Codes of recipients' own links are hidden. */
export const eventJson = named(
  "LoggedEvent",
  Type.Object({
    position: count,
    id: text("01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"),
    stream: text("requests"),
    version: count,
    type: text("LinkClicked"),
    time,
    words: text("an operator linked an account"),
    data: Type.Record(Type.String(), Type.Unknown()),
    meta: Type.Record(Type.String(), Type.Unknown()),
    hash: text("nL3x0yT8aT0O2pQk5m4c1vYw7uJr6s9eBdGhZfXqAio"),
  }),
);

/**
 * Converts an event to JSON. `dispatches`: the only dispatches that its sentence mentions, if the event is an outcome
 * of several.
 */
export function toEventJson(event: Recorded, dispatches?: RequestPositions): Static<typeof eventJson> {
  const { position, id, stream, version, type, time: at, data, meta, hash } = hideCodes(event);
  const words = describeNarrowed(event, dispatches);
  return { position, id, stream, version, type, time: at, words, data: { ...data }, meta: { ...meta }, hash };
}

/**
 * Describes an event in a sentence. `dispatches`: the only dispatches that the sentence mentions, if the event is an
 * outcome of several.
 */
export function describeNarrowed(event: Recorded, dispatches: RequestPositions | undefined): string {
  if (dispatches === undefined || !isOutcome(event)) return describeEvent(event);
  return describeEvent(narrowedTo(event, dispatches) ?? event);
}
