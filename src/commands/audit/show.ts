import { toRecipient } from "../../../projections/contacts.ts";
import {
  historyOfEvent,
  type EventHistory,
  type History,
  historyOfLink,
  streamsOfLink,
  historyOfRecipient,
  parseLink,
} from "../../history/history.ts";
import { EVENT_ID, isEventName, type Reading } from "../../history/find-event.ts";
import type { ChannelTally, Tally } from "../../history/link-tally.ts";
import { eventsAt } from "../../log/event-log.ts";
import { findNamed, parseRecipient } from "../../recipients/resolve-recipient.ts";
import { discloseEvent, discloseRecipient, type PersonalRead } from "../../privacy/read-audit.ts";
import { foldTo } from "../../projector/fold-to.ts";
import { findPlace } from "../../projector/parse-moment.ts";
import { Command, Option, type MakeCommand } from "../shared/command.ts";
import { answer, fail, type Terminal, printable, table } from "../shared/terminal.ts";
import { describeConsent } from "../../history/words/outreach.ts";
import { formatSentence } from "../../history/words/sentence.ts";
import { RECIPIENT_HEAD, toRecipientCells, toRecipientJson } from "../../recipients/recipient-json.ts";
import { recordRead } from "../shared/log-session.ts";
import { describeMomentJson } from "../../projector/log-reader.ts";
import { AS_OF_OPTION, foldToMoment, openAtMoment } from "../shared/moment.ts";
import { withProgress } from "../shared/progress.ts";
import type { Recorded } from "../../../events/catalog.ts";
import { PROJECTION_NAMES, type ProjectionName } from "../../../projections/all.ts";
import { usageError } from "../../platform/service-error.ts";
import type { EncryptedLog } from "../../privacy/encrypted-log.ts";
import { DIFFERENCES_MAX, formatPath, formatValue } from "../../projector/differences.ts";
import { findChange } from "../../projector/event-changes.ts";
import { describeNarrowed, toEventJson, type RequestPositions } from "../../history/event-json.ts";
import { formatCaller } from "../../history/words/sentence.ts";

export const showHistoryCommand: MakeCommand = (terminal) =>
  new Command("show")
    .summary("show what happened to a person, a link, an event or a run")
    .description(
      `Says in words all that happened to one person or link, or what belongs to the
event or run with an id: the same request, message or dispatch. For a person no
click is read; for a link, the outcomes of its channels since its first click.
Digits are a person's id if there is one, else the position of an event.`,
    )
    .argument(
      "<subject>",
      "a person (id, handle or @handle), a link (domain/short_code), a position, or the id of an event or run",
    )
    .option(...AS_OF_OPTION)
    .option("--all", "all events; without it, of many the first and the last")
    .addOption(
      new Option("--projection <name>", "of one event: what it changed in the state of this projection").choices(
        PROJECTION_NAMES,
      ),
    )
    .option("--json", "write each event as a JSON object; with --projection, the changes as one")
    .examples(
      "reachlog audit show @sara_sells",
      "reachlog audit show go.example/welcome --all",
      "reachlog audit show 43",
      "reachlog audit show 43 --projection deliveries",
    )
    .action(async (wanted, { asOf: at, all, projection, json }) => {
      const subject = parseSubject(wanted);
      await using asked = await openAtMoment(terminal, at);
      const { store, moment } = asked;
      const place = await findPlace(store, moment);
      const { position: to } = place;
      const found = await withProgress(terminal, "reading", to, (onProgress) =>
        subject.findIn({ store, to, onProgress }),
      );
      if (found === undefined) {
        return fail(terminal, `the log has no ${subject.kind} ${printable(wanted)} (${describeMomentJson(place)})`);
      }
      if (projection !== undefined) return await showChange(terminal, store, found, projection, json);
      const { positions, dispatches } = found.history;
      await recordRead(terminal, store, { ...found.read, records: positions.length });
      const between = positions.length - 2 * SHOWN_EVENTS;
      const isCut = json !== true && all !== true && between > 0;
      const write = async (some: readonly number[]): Promise<void> => {
        const format = json === true ? formatEventJson : formatEventLine;
        for await (const event of eventsAt(store, some)) terminal.out(format(event, dispatches));
      };
      await write(isCut ? positions.slice(0, SHOWN_EVENTS) : positions);
      if (isCut) terminal.out(`… ${between} more; --all shows them …\n`);
      if (isCut) await write(positions.slice(-SHOWN_EVENTS));
      if (json !== true) terminal.out(`\n${found.summary}(${describeMomentJson(place)})\n`);
      return undefined;
    });

/** What the event that was found changed in a state. Throws a ServiceError (usage) where a recipient or a link was found. */
async function showChange(
  terminal: Terminal,
  store: EncryptedLog,
  { history, read }: Summarized,
  projection: ProjectionName,
  json: true | undefined,
): Promise<void> {
  if (!("event" in history)) throw usageError("--projection is for one event: give its id or its position");
  const { event } = history;
  await recordRead(terminal, store, { ...read, filters: ["projection"], records: 1 });
  const { states } = await foldToMoment(terminal, store, [projection], { to: event.position - 1 });
  const { differences } = await findChange(projection, states[projection], event);
  const changes = differences.map(({ path, values }) => ({
    path,
    ...(values === "reordered" ? { reordered: true } : { before: toJson(values.before), after: toJson(values.after) }),
  }));
  const lines = differences.map(({ path, values }) => {
    const text =
      values === "reordered" ? "other order" : `${formatValue(values.before)} → ${formatValue(values.after)}`;
    return `${printable(`${formatPath(path)}: ${text}`)}\n`;
  });
  if (lines.length === DIFFERENCES_MAX) lines.push(`(the first ${DIFFERENCES_MAX} changes)\n`);
  const told = lines.length === 0 ? `the state of ${projection} does not change\n` : lines.join("");
  answer(terminal, json, { position: event.position, projection, changes }, `${formatEventLine(event)}\n${told}`);
}

/** Of a value of a state, with Maps as lists of their entries; undefined: there is none. */
function toJson(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(formatValue(value)) as unknown);
}

/** Events shown of each end of a long history: both together fill a screen. */
const SHOWN_EVENTS = 20;

interface Subject {
  readonly kind: "event or run" | "click of" | "position and no person" | "person called";
  findIn(reading: Reading): Promise<Summarized | undefined>;
}

interface Summarized {
  readonly history: History | EventHistory;
  readonly summary: string;
  readonly read: PersonalRead;
}

/** An address on X names a recipient; any other text with a slash is a link. */
const PROFILE = /^(?:https?:\/\/)?(?:(?:www|mobile|m)\.)?(?:x|twitter)\.com\//i;

/** Tells an id, a link and a person apart by how they are written. Throws a ServiceError (usage) on what is none of them. */
function parseSubject(text: string): Subject {
  if (EVENT_ID.test(text)) {
    return { kind: "event or run", findIn: (reading) => findEventSubject(reading, text.toLowerCase()) };
  }
  if (text.includes("/") && !PROFILE.test(text)) {
    const link = parseLink(text);
    return { kind: "click of", findIn: (reading) => findLinkSubject(reading, link) };
  }
  // Refuses what cannot be a handle before the log is read.
  parseRecipient(text);
  const isNumber = /^\d+$/.test(text);
  return {
    kind: isNumber ? "position and no person" : "person called",
    async findIn(reading) {
      const person = await findPersonSubject(reading, text);
      return person ?? (isNumber && isEventName(text) ? findEventSubject(reading, text) : undefined);
    },
  };
}

async function findEventSubject(reading: Reading, id: string): Promise<Summarized | undefined> {
  const history = await historyOfEvent(reading, id);
  if (history === undefined) return undefined;
  const { event } = history;
  const read = { resource: event.type === "RunStarted" ? "run" : "event", ...discloseEvent(event) } as const;
  return { history, summary: summaryOfEvent(event), read };
}

async function findLinkSubject(reading: Reading, link: string): Promise<Summarized | undefined> {
  const { states } = await foldTo(reading.store, ["clicks"], { to: reading.to });
  const history = await historyOfLink(reading, link, streamsOfLink(states.clicks, link));
  return history && { history, summary: summaryOfLink(history.tally), read: { resource: "link" } };
}

async function findPersonSubject(reading: Reading, name: string): Promise<Summarized | undefined> {
  const history = await historyOfRecipient(reading, (contacts) => findNamed(contacts, name));
  if (history === undefined) return undefined;
  const { contact } = history;
  const read = { resource: "recipient", ...discloseRecipient(toRecipient(contact)) } as const;
  const row = table(RECIPIENT_HEAD, [toRecipientCells(toRecipientJson(contact))]);
  return { history, summary: `${row}${printable(formatSentence(describeConsent(contact)))}\n`, read };
}

function summaryOfEvent({ position, id, stream, meta }: Recorded): string {
  const by = meta.caller === undefined ? "" : `, by ${formatCaller(meta.caller)}`;
  const request = meta.request_id === undefined ? "" : `, request ${meta.request_id}`;
  return `${printable(`position ${position} is event ${id} of the stream ${stream}${by}${request}`)}\n`;
}

function summaryOfLink({ people, bots, channels }: Tally): string {
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
  retried: "retried",
  discarded: "discarded",
  failedAttempts: "failed attempts",
  recordedAgain: "recorded twice",
};

/** One event as a sentence; an outcome is narrowed to these dispatches. */
export function formatEventLine(event: Recorded, dispatches?: RequestPositions): string {
  return `${event.position} ${event.time} ${printable(describeNarrowed(event, dispatches))}\n`;
}

export function formatEventJson(event: Recorded, dispatches?: RequestPositions): string {
  return `${JSON.stringify(toEventJson(event, dispatches))}\n`;
}
