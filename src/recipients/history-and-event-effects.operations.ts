import { Type, type Static } from "@sinclair/typebox";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { positionsAbout, toRecipient } from "../../projections/contact-state.ts";
import { LINK_CHARACTERS_MAX } from "../../projections/link-keys-and-text-links.ts";
import { eventJson, toEventJson } from "../history/event-json.ts";
import { EVENT_ID, EVENT_NAME, findEvent, isEventName } from "../history/find-event.ts";
import {
  historyOfEvent,
  historyOfLink,
  parseLink,
  streamsOfLink,
  type History,
} from "../history/history-of-recipient-link-or-event.ts";
import type { ChannelTally, Tally } from "../history/count-link-clicks-and-outcomes.ts";
import { describeConsent } from "../history/sentences/outreach.ts";
import { formatCaller } from "../history/event-sentences.ts";
import { formatRecipient, formatSentence } from "../history/sentences/sentence-parts.ts";
import { eventsAt } from "../log/event-log.ts";
import { count, oneOf, orNull, text } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/format-numbers-and-lists.ts";
import { operation, pageInput, refusal } from "../platform/operation.ts";
import { discloseEvent } from "../privacy/record-personal-data-read.ts";
import { DIFFERENCES_MAX, formatPath, formatValue } from "../projector/compare-states.ts";
import { findChange } from "../projector/event-state-changes.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  toMomentJson,
  type LogReader,
} from "../projector/operation-states-as-of.ts";
import type { Place } from "../projector/parse-moment.ts";
import { toRecipientCells, toRecipientJson } from "./recipient-json.ts";
import { findNamed, parseRecipient } from "./resolve-recipient.ts";

/** Default number of events in one response: as many as fit a screen. */
const EVENTS_SHOWN = 40;
const EVENTS_SHOWN_MAX = 1_000;

const about = Type.Object({ id: Type.Optional(Type.String()), username: Type.Optional(Type.String()) });

interface Found {
  readonly kind: "recipient" | "link" | "event" | "run";
  readonly recipient: Static<typeof about> | null;
  readonly place: Place;
  readonly history: History;
  /** Sentences on the recipient, link, event or run that the audit is about, and on its state. */
  readonly summary: string;
}

export const showHistory = operation({
  name: "audit show",
  id: "showHistory",
  tag: "service",
  access: ["session", "read"],
  summary: "Show what happened to a recipient, a link, an event or a run.",
  description:
    "All events about one recipient or link; or, for the id of an event or run, the events of the same request, message or dispatch. Each has a sentence. For a recipient, no clicks are read; for a link, the counts include the outcomes of its channels since its first click. Digits are a recipient's id if there is one, else the position of an event.",
  personalRead: "recipient",
  input: {
    subject: Type.String({
      minLength: 1,
      maxLength: LINK_CHARACTERS_MAX,
      description:
        "A recipient (id, handle or @handle), a link (domain/short_code), a position, or the id of an event or run",
      examples: ["@sara_sells"],
    }),
    newest: Type.Optional(Type.Boolean({ description: "The newest events first" })),
    ...pageInput(EVENTS_SHOWN, EVENTS_SHOWN_MAX),
    ...asOfInput,
  },
  positional: ["subject"],
  output: {
    kind: oneOf("recipient", "link", "event", "run"),
    recipient: orNull(about),
    summary: text("@sara_sells (2244994945): sent"),
    events: Type.Array(eventJson),
    count,
    next: orNull(count),
    ...asOf,
  },
  list: "events",
  refusals: {
    unknown_subject: refusal(
      "not_found",
      "The log knows no recipient, link, event or run of that name at that moment.",
    ),
  },
  async run(context: LogReader, { subject, newest = false, limit = EVENTS_SHOWN, after, as_of }) {
    const found = await findOnce(context, subject, as_of);
    if (found === undefined) return "unknown_subject";
    const { kind, recipient, summary, place, history } = found;
    const rest = history.positions.filter(
      (position) => after === undefined || (newest ? position < after : position > after),
    );
    const page = newest ? rest.slice(-limit) : rest.slice(0, limit);
    const events = await Array.fromAsync(eventsAt(context.store, page));
    const shown = events.map((event) => toEventJson(event, history.dispatches));
    if (newest) shown.reverse();
    const next = rest.length > limit ? shown.at(-1)!.position : null;
    const { length: all } = history.positions;
    return { kind, recipient, summary, events: shown, count: all, next, as_of: toMomentJson(place) };
  },
  discloses: ({ kind, recipient, events }) => ({
    resource: kind,
    ...(recipient === null ? {} : { recipient }),
    records: events.length,
  }),
  text({ events, summary, count: all, next, as_of }) {
    const lines = events.map(({ position, time, words }) => `${position} ${time} ${words}\n`).join("");
    const more = next === null ? "" : `${countInWords(all, "event")}; --after ${next} lists more; `;
    return `${lines}\n${summary}\n(${more}${describeMomentJson(as_of)})\n`;
  },
  examples: ["@sara_sells", "go.example/welcome --newest", "43"],
});

/**
 * The last search of each reader. All pages of one list are cut from the same search, because each search may read the
 * whole log.
 */
const SEARCHES = new WeakMap<LogReader, { readonly asked: string; readonly found: Promise<Found | undefined> }>();

function findOnce(context: LogReader, subject: string, asOf: string | undefined): Promise<Found | undefined> {
  const asked = JSON.stringify([subject, asOf]);
  const last = SEARCHES.get(context);
  if (last?.asked === asked) return last.found;
  const found = findSubject(context, subject, asOf);
  SEARCHES.set(context, { asked, found });
  return found;
}

/** Matches the address of a profile on X, which names a recipient; any other text with a slash names a link. */
const PROFILE = /^(?:https?:\/\/)?(?:(?:www|mobile|m)\.)?(?:x|twitter)\.com\//i;

/**
 * Finds the event, run, link or recipient that a text names; its spelling tells which of them it is. Throws a
 * ServiceError (usage) for any other text.
 */
async function findSubject(context: LogReader, subject: string, asOf: string | undefined): Promise<Found | undefined> {
  if (EVENT_ID.test(subject)) return findEventSubject(context, await context.at(asOf), subject.toLowerCase());
  if (subject.includes("/") && !PROFILE.test(subject)) return findLinkSubject(context, parseLink(subject), asOf);
  // Throws for a text that cannot be a handle, before the log is read for nothing.
  parseRecipient(subject);
  const { states, ...place } = await context.at(asOf, "contacts");
  const contact = findNamed(states.contacts, subject);
  if (contact === undefined) return isEventName(subject) ? findEventSubject(context, place, subject) : undefined;
  const positions = positionsAbout(contact).filter((position) => position <= place.position);
  const recipient = toRecipient(contact);
  const [, , , , status, skipped] = toRecipientCells(toRecipientJson(contact));
  const stands = `${formatRecipient(recipient)}: ${status}${skipped === "" ? "" : `; skipped for ${skipped}`}`;
  const summary = `${stands}\n${formatSentence(describeConsent(contact))}`;
  return { kind: "recipient", recipient, place, history: { positions, dispatches: new Map() }, summary };
}

async function findEventSubject({ store }: LogReader, place: Place, name: string): Promise<Found | undefined> {
  const history = await historyOfEvent({ store, to: place.position, onProgress() {} }, name);
  if (history === undefined) return undefined;
  const { position, id, stream, type, meta, data } = history.event;
  const by = meta.caller === undefined ? "" : `, by ${formatCaller(meta.caller)}`;
  const request = meta.request_id === undefined ? "" : `, request ${meta.request_id}`;
  const summary = `position ${position} is event ${id} of the stream ${stream}${by}${request}`;
  const { recipient = null } = discloseEvent({ data });
  return { kind: type === "RunStarted" ? "run" : "event", recipient, place, history, summary };
}

async function findLinkSubject({ store, at }: LogReader, link: string, asOf: string | undefined) {
  const { states, ...place } = await at(asOf, "clicks");
  const reading = { store, to: place.position, onProgress() {} };
  const history = await historyOfLink(reading, link, streamsOfLink(states.clicks, link));
  return history && ({ kind: "link", recipient: null, place, history, summary: describeTally(history.tally) } as const);
}

function describeTally({ people, bots, channels }: Tally): string {
  const lines = channels.map(({ channel, ...counts }) => {
    const shown = Object.entries(COUNTS).filter(([name]) => counts[name as keyof typeof COUNTS] > 0);
    const parts = shown.map(([name, words]) => `${words} ${counts[name as keyof typeof COUNTS]}`);
    return `\n${channel}: ${parts.join(", ") || "nothing"}`;
  });
  return `clicks of people ${people}, of bots ${bots}${lines.join("")}`;
}

const COUNTS: Readonly<Record<Exclude<keyof ChannelTally, "channel">, string>> = {
  pending: "pending",
  delivered: "delivered",
  skipped: "skipped",
  inDoubt: "in doubt",
  dead: "dead",
  retried: "retried",
  discarded: "discarded",
  failedAttempts: "failed attempts",
  recordedAgain: "recorded twice",
};

export const showChange = operation({
  name: "audit change",
  id: "showChange",
  tag: "service",
  access: ["session", "read"],
  summary: "Show what one event changed in the state of a projection.",
  description: `The first ${DIFFERENCES_MAX} changes. A Map of the state is a list of its entries.`,
  personalRead: "event",
  input: {
    event: Type.String({ pattern: EVENT_NAME, description: "The event's id or its position", examples: ["43"] }),
    projection: Type.Union(oneOf(...PROJECTION_NAMES).anyOf, { title: "name", description: "The projection" }),
  },
  positional: ["event"],
  output: {
    event: eventJson,
    recipient: orNull(about),
    projection: oneOf(...PROJECTION_NAMES),
    changes: Type.Array(
      Type.Object({
        path: Type.Array(Type.String()),
        reordered: Type.Optional(Type.Literal(true)),
        before: Type.Optional(Type.Unknown({ description: "Absent: there was none." })),
        after: Type.Optional(Type.Unknown({ description: "Absent: there is none." })),
      }),
    ),
    ...asOf,
  },
  refusals: { unknown_event: refusal("not_found", "The log has no event with that id or at that position.") },
  async run({ store, at }: LogReader, { event: name, projection }) {
    const { position: to } = await store.head();
    const event = await findEvent({ store, to, onProgress() {} }, name.toLowerCase());
    if (event === undefined) return "unknown_event";
    const { states, ...place } = await at(String(event.position - 1), projection);
    const { differences } = await findChange(projection, states[projection], event);
    const changes = differences.map(({ path, values }) => ({
      path: [...path],
      ...(values === "reordered"
        ? { reordered: true as const }
        : { before: toJson(values.before), after: toJson(values.after) }),
    }));
    const { recipient = null } = discloseEvent(event);
    return { event: toEventJson(event), recipient, projection, changes, as_of: toMomentJson(place) };
  },
  discloses: ({ recipient }) => ({ ...(recipient === null ? {} : { recipient }), records: 1 }),
  text({ event: { position, time, words }, projection, changes, as_of }) {
    const lines = changes.map(({ path, reordered, before, after }) => {
      const values = reordered ? "other order" : `${formatValue(before)} → ${formatValue(after)}`;
      return `${formatPath(path)}: ${values}\n`;
    });
    if (lines.length === 0) lines.push(`the state of ${projection} does not change\n`);
    if (changes.length === DIFFERENCES_MAX) lines.push(`(the first ${DIFFERENCES_MAX} changes)\n`);
    return `${position} ${time} ${words}\n\n${lines.join("")}(before it: ${describeMomentJson(as_of)})\n`;
  },
  examples: ["43 --projection deliveries"],
});

/** Returns a state's value as JSON; undefined if there is none. */
function toJson(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(formatValue(value)) as unknown);
}
