import { v7 } from "uuid";

/** Milliseconds since the epoch. */
export type Clock = () => number;

/** Makes event, run and request ids: UUIDv7, so that they sort by time. */
export type MakeId = () => string;

export const systemClock: Clock = () => Date.now();

export const makeId: MakeId = () => v7();

/** ISO 8601 UTC with milliseconds. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
