import type { Recorded } from "../../../../events/catalog.ts";
import { printable } from "../../table.ts";
import { wordsOf } from "../words.ts";

/** One event as a line for people. */
export function sentenceOf(event: Recorded): string {
  return `${event.position} ${event.time} ${printable(wordsOf(event))}\n`;
}

/** One event as a line for programs, as an export writes it, and in words. */
export function asJson(event: Recorded): string {
  const { position, id, stream, version, type, time, data, meta, hash } = event;
  return `${JSON.stringify({ position, id, stream, version, type, time, words: wordsOf(event), data, meta, hash })}\n`;
}
