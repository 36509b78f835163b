import type { EventHistory } from "../../../history/event.ts";
import type { LinkHistory } from "../../../history/link.ts";
import type { PersonHistory } from "../../../history/person.ts";
import type { ChannelTally } from "../../../history/tally.ts";
import { tableOf } from "../../contacts.ts";
import { printable, table } from "../../table.ts";

/** What a history comes to, as lines that are safe for a terminal. */
export function summaryOfPerson({ person }: PersonHistory): string {
  return tableOf([person]);
}

export function summaryOfEvent({ event: { position, id, stream, meta } }: EventHistory): string {
  const by = meta.caller === undefined ? "" : `, by ${meta.caller}`;
  const request = meta.request_id === undefined ? "" : `, request ${meta.request_id}`;
  return `${printable(`position ${position} is event ${id} of the stream ${stream}${by}${request}`)}\n`;
}

export function summaryOfLink({ tally: { people, bots, channels } }: LinkHistory): string {
  const clicks = `clicks of people ${people}, of bots ${bots}\n`;
  if (channels.length === 0) return clicks;
  const columns = Object.entries(COLUMNS) as [keyof ChannelTally, string][];
  const rows = channels.map((channel) => columns.map(([name]) => channel[name]));
  return `${clicks}${table(Object.values(COLUMNS), rows)}`;
}

const COLUMNS: Readonly<Record<keyof ChannelTally, string>> = {
  channel: "channel",
  pending: "pending",
  delivered: "delivered",
  skipped: "skipped",
  inDoubt: "in doubt",
  dead: "dead",
  retried: "taken up again",
  discarded: "discarded",
  failedAttempts: "failed attempts",
  recordedAgain: "recorded twice",
};
