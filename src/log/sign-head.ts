import { signCheckpoint, type EventStore, type Head, type SigningKey } from "eventstore-lite";
import { isoTime, type Clock } from "../platform/clock.ts";
import type { Event } from "../../events/catalog.ts";
import { originOf } from "./origin.ts";

/** The log's signed checkpoint as of that head. */
export function signHead(store: EventStore<Event>, { position, hash }: Head, key: SigningKey, clock: Clock): string {
  return signCheckpoint({ origin: originOf(store), position, hash, time: isoTime(clock()) }, key);
}
