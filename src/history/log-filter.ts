import { EVENT_TYPES, type EventType, type LogStore } from "../../events/event-types-and-codec.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { positionsAbout, toRecipient, type Contacts } from "../../projections/contact-state.ts";
import { splitLink } from "../../projections/normalize-link.ts";
import { toLinkKey } from "../../projections/link-keys-and-text-links.ts";
import { STREAMS } from "../log/event-log.ts";
import { escapeControls } from "../platform/escape-control-characters.ts";
import { parseMoment, findPlace, startOfDay } from "../projector/parse-moment.ts";
import { EVENT_ID, positionBefore } from "./find-event.ts";
import { findRunEnd, isOfRun, findRunStart } from "./find-run-events.ts";
import type { PositionRange, Selection } from "./select-events.ts";
import { usageError } from "../platform/service-error.ts";

/** Filter of events as the caller wrote it. An event must match all members. */
export interface LogFilter {
  readonly types?: readonly string[];
  readonly stream?: string;
  /** Recipient that the events are about: an id or a handle. */
  readonly recipient?: string;
  /** Link whose clicks are selected: `domain/short_code`. */
  readonly link?: string;
  /** Id of the run whose events are selected. */
  readonly run?: string;
  /** Position, day or time from which on events are selected, in the notation of the option `--as-of`. */
  readonly from?: string;
  /** Position, day or time up to and including which events are selected, in the notation of the option `--as-of`. */
  readonly to?: string;
}

/** Descriptions of the members of an event filter, for `--help` and the API's document. */
export const FILTER_WORDS = {
  type: "Only events of this type; may be given several times.",
  stream: "Only events of this stream.",
  recipient: "Only what happened to this recipient: an id or a handle.",
  link: "Only clicks of this link: `domain/short_code`.",
  run: "Only events of the run with this id.",
  from: "Only events from this position, day or time on.",
  to: "Only events up to this position, day or time.",
} as const;

export function filterIn(query: URLSearchParams): LogFilter {
  const types = query.getAll("type").filter((type) => type !== "");
  const texts = (["stream", "recipient", "link", "run", "from", "to"] as const).flatMap((name) => {
    const text = query.get(name)?.trim() ?? "";
    return text === "" ? [] : [[name, text] as const];
  });
  return { ...(types.length === 0 ? {} : { types }), ...Object.fromEntries(texts) };
}

export interface FilterSources {
  readonly store: LogStore;
  readonly contacts: () => Contacts | Promise<Contacts>;
  /** Time zone, an IANA name, of the days in the filter. */
  readonly timezone: string;
  /** Position up to which events are selected, as that of the page's moment. */
  readonly position: number;
}

/**
 * Turns a filter into a selection of the log's events. Throws a ServiceError (usage) if a member cannot be understood.
 */
export async function toSelection(filter: LogFilter, sources: FilterSources): Promise<Selection> {
  const types = filter.types?.map(parseType);
  const range = await toRange(filter, sources);
  const asked = filter.link === undefined ? filter.stream : toStream(filter.link, filter.stream);
  if (asked === null) return NOTHING;
  const { recipient, run } = filter;
  if (recipient === undefined && run === undefined) return { kind: "range", range, types, stream: asked };
  const ofRun = run === undefined ? undefined : await runRange(run, range, sources);
  if (ofRun === null) return NOTHING;
  const isOf = run === undefined ? undefined : isOfRun(run.toLowerCase());
  if (recipient === undefined) {
    const isElsewhere = asked !== undefined && asked !== STREAMS.outreach;
    if (isElsewhere || ofRun === undefined) return NOTHING;
    return { kind: "range", range: ofRun, types, stream: STREAMS.outreach, isWanted: isOf };
  }
  const { first, last } = ofRun ?? range;
  const contacts = await sources.contacts();
  const known =
    findPerson(contacts, { id: recipient }) ?? findPerson(contacts, { username: recipient.replace(/^@/, "") });
  if (known === undefined) return NOTHING;
  const positions = positionsAbout(known).filter((position) => position >= first && position <= last);
  return { kind: "places", positions, types, stream: asked, isWanted: isOf, recipient: toRecipient(known) };
}

const NOTHING: Selection = { kind: "places", positions: [], types: undefined, stream: undefined };

function parseType(text: string): EventType {
  const type = EVENT_TYPES.find((known) => known === text);
  if (type === undefined) throw usageError(`there is no type of event called "${shown(text)}"`);
  return type;
}

/**
 * Returns the stream with the clicks of a link. Null if the filter also names another stream, so that no event can
 * match.
 */
function toStream(link: string, stream: string | undefined): string | null {
  if (splitLink(link).includes("")) throw usageError(`a link is DOMAIN/SHORT_CODE, not "${shown(link)}"`);
  const own = STREAMS.link(...splitLink(toLinkKey(link)));
  return stream === undefined || stream === own ? own : null;
}

async function toRange({ from, to }: LogFilter, sources: FilterSources) {
  const { store, position, timezone } = sources;
  const first = from === undefined ? 1 : await firstPosition(from, sources);
  if (to === undefined) return { first, last: position };
  if (/^\d{1,15}$/.test(to)) return { first, last: Math.min(Number(to), position) };
  const place = await findPlace(store, parseMoment(to, timezone));
  return { first, last: Math.min(place.position, position) };
}

async function firstPosition(from: string, { store, position: to, timezone }: FilterSources): Promise<number> {
  if (/^\d{1,15}$/.test(from)) return Math.max(1, Number(from));
  const until = startOfDay(from, timezone) ?? parseMoment(from, timezone).until;
  if (until === undefined) throw usageError(`there is no such time as ${shown(from)}`);
  return (await positionBefore({ store, to, onProgress: () => {} }, until.getTime())) + 1;
}

/** Returns the positions between which a run's events are, within the filter's range; null if there is no such run. */
async function runRange(run: string, { first, last }: PositionRange, { store, position: to }: FilterSources) {
  if (!EVENT_ID.test(run))
    throw usageError(`a run has an id such as 01a1fd59-3b3a-7515-964c-67ff53c10ed1, not "${shown(run)}"`);
  const reading = { store, to, onProgress: () => {} };
  const start = await findRunStart(reading, run.toLowerCase());
  if (start === undefined) return null;
  const end = await findRunEnd(reading, run.toLowerCase(), start);
  return { first: Math.max(first, start), last: Math.min(last, end ?? to) };
}

function shown(text: string): string {
  return escapeControls(text.slice(0, 60));
}
