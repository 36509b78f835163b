import {
  type Dispatches,
  findDispatches,
  findOwnChannels,
  readRequestedChannels,
  sourcesOfEvent,
} from "./dispatch-outcomes.ts";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { findEvent, positionBefore, type Reading } from "./find-event.ts";
import { isOfOneRecipient, positionsOfRuns } from "./find-run-events.ts";
import { splitLink } from "../../projections/normalize-link.ts";
import { toLinkKey } from "../../projections/link-keys-and-text-links.ts";
import { usageError } from "../platform/service-error.ts";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { STREAMS, inOrder } from "../log/event-log.ts";
import { createTally } from "./count-link-clicks-and-outcomes.ts";
import { spellingsOf, type Clicks } from "../../projections/clicks.ts";
import { positionsAbout, type Contact, type Contacts } from "../../projections/contact-state.ts";
import { contacts } from "../../projections/contacts.ts";

/**
 * History of one recipient, link, event or run. `positions`: its events, in the order of the log. `dispatches`: its
 * dispatches; they are named because one event may record outcomes of other dispatches too.
 */
export interface History {
  readonly positions: readonly number[];
  readonly dispatches: Dispatches;
}

/**
 * Finds an event and everything that caused it or that it caused: the same request, message or run, and the dispatches
 * that it requests or is about. `id`: its id or position, or a run's id. Undefined if the log has no such event.
 */
export async function historyOfEvent(reading: Reading, id: string) {
  const asked = await findEvent(reading, id);
  if (asked === undefined) return undefined;
  // The request that started a run caused all of its messages, so the history of one message does not include all
  // effects of that request.
  const roots = isOfOneRecipient(asked) ? [asked] : [asked, ...(await sameRequest(reading, asked))];
  const findChannels = await readRequestedChannels(reading);
  const sources = (await Promise.all(roots.map((root) => sourcesOfEvent(reading, findChannels, root)))).flat();
  const requested = new Map(sources.map((source) => [source.position, findOwnChannels(findChannels, source)]));
  const found = [...roots.map(({ position }) => position), ...requested.keys()];
  const dispatches = await findDispatches(reading, requested, ({ position }) => void found.push(position));
  const positions = inOrder([...found, ...(await positionsOfRuns(reading, roots))]);
  return { positions, dispatches, event: asked };
}

/**
 * Maximum time between two events of one API request, in ms. A request is answered within 5 minutes (`Prefer:
 * wait=300`); twice that allows for events recorded late.
 */
const REQUEST_MS = 10 * 60_000;

/**
 * Finds the events of the same HTTP request, or of the same trace, recorded up to {@link REQUEST_MS} before or after
 * the event. For the start of a run, these are the events of the run's first minutes.
 */
async function sameRequest(reading: Reading, { time, meta }: Recorded): Promise<readonly Recorded[]> {
  const { request_id, traceparent } = meta;
  if (request_id === undefined && traceparent === undefined) return [];
  const { store, to, onProgress } = reading;
  const ms = Date.parse(time);
  const from = (await positionBefore(reading, ms - REQUEST_MS)) + 1;
  const found: Recorded[] = [];
  for await (const event of store.read({ from, to, until: new Date(ms + REQUEST_MS) })) {
    onProgress(event.position);
    const isSame = request_id !== undefined && event.meta.request_id === request_id;
    if (isSame || (traceparent !== undefined && event.meta.traceparent === traceparent)) found.push(event);
  }
  return found;
}

/**
 * Returns the streams that hold the clicks of a link, given in the form of `toLinkKey`. Older versions had a stream for
 * each spelling of the link.
 */
export function streamsOfLink(clicks: Clicks, link: string): readonly string[] {
  return spellingsOf(clicks, link).map(toStream);
}

function toStream(link: string): string {
  const slash = link.indexOf("/");
  return STREAMS.link(link.slice(0, slash), link.slice(slash + 1));
}

/**
 * Reads the clicks of one link, and each channel's outcomes since the link's first click there; `tally` has the counts
 * of both. Undefined if the link has no clicks.
 */
export async function historyOfLink(reading: Reading, link: string, streams: readonly string[] = [toStream(link)]) {
  const { store, to } = reading;
  const findChannels = await readRequestedChannels(reading);
  const { take, tally } = createTally(findChannels);
  const requested = new Map<number, readonly ChannelName[]>();
  for (const stream of streams) {
    for await (const batch of store.readFolded({ stream, to })) {
      for (const event of batch) {
        take(event);
        if (event.type === "LinkClicked") requested.set(event.position, findChannels(event));
      }
    }
  }
  if (requested.size === 0) return undefined;
  const positions = [...requested.keys()];
  const dispatches = await findDispatches(reading, requested, (event) => {
    take(event);
    positions.push(event.position);
  });
  return { positions: inOrder(positions), dispatches, tally: tally() };
}

/** History of one recipient, and the contact as it was at the end of the reading. */
export type RecipientHistory = NonNullable<Awaited<ReturnType<typeof historyOfRecipient>>>;

/**
 * Reads the history of the recipient that `find` returns: events under each handle that they had, also before their id
 * was known, and reads of their data. Leaves out their clicks. Undefined if there is no such recipient.
 */
export async function historyOfRecipient(
  { store, to, onProgress }: Reading,
  find: (contacts: Contacts) => Contact | undefined,
) {
  const state = contacts.initial();
  for await (const batch of store.readFolded({ types: contacts.types, to })) {
    for (const event of batch) contacts.evolve(state, event);
    onProgress(batch.at(-1)?.position ?? 0);
  }
  const contact = find(state);
  return contact && { positions: positionsAbout(contact), dispatches: new Map<number, number>(), contact };
}

/**
 * Parses a link that an operator writes as `domain/short_code`, with or without a scheme. Throws a ServiceError (usage)
 * for any other text.
 */
export function parseLink(text: string): string {
  if (splitLink(text).includes("")) throw usageError("a link is written domain/short_code");
  return toLinkKey(text);
}
