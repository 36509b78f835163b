/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { EventType, Recorded } from "../../../events/catalog.ts";
import { positionsOf, type Sources } from "../../../events/sources.ts";
import { linkKey } from "../../../projections/sent-links.ts";
import { msOf } from "../../../projections/time.ts";
import { join, other, say, type Sentence } from "../../history/words/sentence.ts";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import { EventList, EventRow, Glyph, type Look, Words } from "./events.tsx";
import type { View } from "../page-context.ts";
import { Time } from "./time.tsx";
import { A } from "./link.tsx";

/** The event types that are no news. Clicks are news: their number tells something. */
export const ROUTINE: readonly EventType[] = [
  "RequestAnswered",
  "PersonalDataRead",
  "ProjectionRebuilt",
  "TokenUsed",
  "TokenRefreshed",
  "InboxRead",
  "SourceRead",
  "DispatchClaimed",
];

/** Event types that repeat so often that they hide the rest. Final failures and decisions are never among them. */
interface Group {
  readonly types: readonly EventType[];
  readonly look: Look;
  /** Such as `41 clicks on 6 links, 7 by bots · 118 delivered · 3 to be retried`. */
  summarize(events: readonly Recorded[]): Sentence;
}

const GROUPS: readonly Group[] = [
  {
    types: ["LinkClicked", "PersonalLinkClicked", "DispatchSucceeded", "DispatchSkipped", "DispatchFailed"],
    look: ["mouse-pointer-2", "info"],
    summarize: summarizeClicks,
  },
  {
    types: ["DirectMessageAttempted", "DirectMessageSent", "RunPaused", "LinkAdded"],
    look: ["send", "accent"],
    summarize(events) {
      const sent = count(events, "DirectMessageSent");
      const attempted = sent === 0 ? count(events, "DirectMessageAttempted") : 0;
      return joinParts([
        [sent, (number) => `${countInWords(number, "message")} sent`],
        [attempted, (number) => `${countInWords(number, "message")} on the way`],
        [count(events, "LinkAdded"), (number) => `${countInWords(number, "link")} added`],
        [count(events, "RunPaused"), (number) => countInWords(number, "pause")],
      ]);
    },
  },
  {
    types: ["DirectMessageSkipped"],
    look: ["skip-forward", "neutral"],
    summarize: ({ length }) => [`${countInWords(length, "recipient")} skipped`],
  },
  {
    types: ["RecipientAdded", "ConsentRecorded"],
    look: ["upload", "accent"],
    summarize: (events) =>
      joinParts([
        [count(events, "RecipientAdded"), (number) => `${countInWords(number, "recipient")} imported`],
        [count(events, "ConsentRecorded"), (number) => `${countInWords(number, "consent")} recorded`],
      ]),
  },
];

/** Fewer events in a row are shown one by one. */
const GROUP_EVENTS_MIN = 3;

/** The longest time from the first to the last event of a group, in ms. */
const GROUP_MS_MAX = 3_600_000;

/** Events listed in a group, which is folded: with 20 a page of news had 200 KB. A link leads to the rest. */
const GROUP_SHOWN_MAX = 10;

/** A line of the news: one event, or successive events of one group, the newest first. */
interface Line {
  readonly group: Group | undefined;
  readonly events: Recorded[];
}

/** Puts repeated events into one line. `events` has the newest first. */
export function toLines(events: readonly Recorded[]): readonly Line[] {
  const all: Line[] = [];
  for (const event of events) {
    const group = GROUPS.find(({ types }) => types.includes(event.type));
    const last = all.at(-1);
    const [newest] = last?.events ?? [];
    const isNear = newest !== undefined && msOf(newest.time) - msOf(event.time) <= GROUP_MS_MAX;
    if (last !== undefined && group !== undefined && last.group === group && isNear) last.events.push(event);
    else all.push({ group, events: [event] });
  }
  return all.flatMap(({ group, events: own }) =>
    own.length < GROUP_EVENTS_MIN
      ? own.map((event) => ({ group: undefined, events: [event] }))
      : [{ group, events: own }],
  );
}

/** Lines of the news, each with the events behind it, under the day of their newest event. */
export function Lines({ view, lines }: { readonly view: View<"runs">; readonly lines: readonly Line[] }): VNode {
  if (lines.length === 0) return <p class="empty">No events.</p>;
  const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeZone: view.settings.timezone });
  const days = Map.groupBy(lines, ({ events }) => day.format(msOf(events[0]!.time)));
  return (
    <>
      {[...days].map(([name, of]) => (
        <>
          <h3>{name}</h3>
          <ol class="events">
            {of.map(({ group, events }) =>
              group === undefined ? (
                <EventRow view={view} event={events[0]!} />
              ) : (
                <GroupRow view={view} group={group} events={events} />
              ),
            )}
          </ol>
        </>
      ))}
    </>
  );
}

function GroupRow({ view, group, events }: { view: View<"runs">; group: Group; events: readonly Recorded[] }): VNode {
  const newest = events[0]!;
  const oldest = events.at(-1)!;
  return (
    <li>
      <details>
        <summary>
          <Glyph look={group.look} />
          <span class="breakable">
            <Words view={view} sentence={group.summarize(events)} />
          </span>
          <span class="when">
            <Time at={newest.time} />
          </span>
        </summary>
        <EventList view={view} events={events.slice(0, GROUP_SHOWN_MAX)} />
        {events.length <= GROUP_SHOWN_MAX ? null : (
          <A href={`/activity?show=everything&from=${oldest.position}&to=${newest.position}`}>
            All {grouped(events.length)} events
          </A>
        )}
      </details>
    </li>
  );
}

function count(events: readonly Recorded[], type: EventType): number {
  return events.filter((event) => event.type === type).length;
}

/** Joins the counts in words, except those that are 0. */
function joinParts(
  parts: readonly (readonly [number: number, inWords: (number: number) => string | Sentence])[],
): Sentence {
  const counted = parts.filter(([number]) => number > 0).map(([number, inWords]) => [inWords(number)].flat());
  return join(counted, " · ");
}

function summarizeClicks(events: readonly Recorded[]): Sentence {
  const clicks = events.filter((event) => event.type === "LinkClicked");
  const links = [...new Set(clicks.map(({ data: { domain, short_code } }) => linkKey(domain, short_code)))];
  const [link = ""] = links;
  const bots = clicks.filter(({ data }) => data.bot).length;
  const countDispatches = (type: "DispatchSucceeded" | "DispatchSkipped" | "DispatchFailed"): number =>
    events.reduce((sum, event) => (event.type === type ? sum + dispatchesIn(event.data.requests) : sum), 0);
  return joinParts([
    [
      clicks.length,
      (number) =>
        say`${countInWords(number, "click")} on ${links.length === 1 ? other(link) : countInWords(links.length, "link")}${bots === 0 ? "" : `, ${grouped(bots)} by bots`}`,
    ],
    [countDispatches("DispatchSucceeded"), (number) => `${grouped(number)} delivered`],
    [countDispatches("DispatchSkipped"), (number) => `${grouped(number)} not sent`],
    [countDispatches("DispatchFailed"), (number) => `${grouped(number)} to be retried`],
  ]);
}

function dispatchesIn(requests: readonly { readonly sources: Sources }[]): number {
  return requests.reduce((sum, { sources }) => sum + positionsOf(sources).length, 0);
}
