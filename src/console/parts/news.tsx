/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { EventType, Recorded } from "../../../events/catalog.ts";
import { positionsOf, type Sources } from "../../../events/sources.ts";
import { msOf } from "../../../projections/time.ts";
import { join, other, say, type Sentence } from "../../history/words/phrases.ts";
import { grouped } from "../document.tsx";
import { EventList, EventRow, Glyph, type Look, Words } from "./events.tsx";
import { Time } from "./time.tsx";

/** What is repeated so often that it hides the rest. What stays failed, and what was decided, is never among it. */
const GROUPS = {
  clicks: [
    "LinkClicked",
    "PersonalLinkClicked",
    "DispatchSucceeded",
    "DispatchSkipped",
    "DispatchClaimed",
    "DispatchFailed",
  ],
  sends: ["DirectMessageAttempted", "DirectMessageSent", "RunPaused", "LinkAdded"],
  skips: ["DirectMessageSkipped"],
  imports: ["RecipientAdded", "ConsentRecorded"],
  service: [
    "RequestAnswered",
    "PersonalDataRead",
    "ProjectionRebuilt",
    "TokenUsed",
    "TokenRefreshed",
    "InboxRead",
    "SourceRead",
  ],
} as const satisfies Record<string, readonly EventType[]>;

/** What no news is. Clicks are: how many there are says something. */
export const ROUTINE: readonly EventType[] = [...GROUPS.service, "DispatchClaimed"];

type GroupName = keyof typeof GROUPS;

const GROUP_LOOKS: Readonly<Record<GroupName, Look>> = {
  clicks: ["mouse-pointer-2", "info"],
  sends: ["send", "accent"],
  skips: ["skip-forward", "neutral"],
  imports: ["upload", "accent"],
  service: ["clock", "neutral"],
};

/** Fewer neighbours are shown one by one. */
const GROUP_EVENTS_MIN = 3;

/** From the first to the last of a group. */
const GROUP_MS_MAX = 3_600_000;

/** Events of an opened group; the log has the rest. */
const GROUP_SHOWN_MAX = 20;

function findGroup({ type }: Recorded): GroupName | undefined {
  return (Object.keys(GROUPS) as GroupName[]).find((name) => (GROUPS[name] as readonly EventType[]).includes(type));
}

/** A line of the news: one event, or neighbours of one kind. The newest first. */
interface Line {
  readonly name: GroupName | undefined;
  readonly events: Recorded[];
}

/** What repeats is one line; `events`: the newest first. */
export function toLines(events: readonly Recorded[]): readonly Line[] {
  const all: Line[] = [];
  for (const event of events) {
    const name = findGroup(event);
    const last = all.at(-1);
    const [newest] = last?.events ?? [];
    const isNear = newest !== undefined && msOf(newest.time) - msOf(event.time) <= GROUP_MS_MAX;
    if (last !== undefined && name !== undefined && last.name === name && isNear) last.events.push(event);
    else all.push({ name, events: [event] });
  }
  return all.flatMap(({ name, events: own }) =>
    own.length < GROUP_EVENTS_MIN
      ? own.map((event) => ({ name: undefined, events: [event] }))
      : [{ name, events: own }],
  );
}

/** Lines of the news, each with the events behind it. */
export function Lines({ lines }: { readonly lines: readonly Line[] }): VNode {
  if (lines.length === 0) return <p class="empty">No events.</p>;
  return (
    <ol class="events">
      {lines.map(({ name, events }) =>
        name === undefined ? <EventRow event={events[0]!} /> : <GroupRow name={name} events={events} />,
      )}
    </ol>
  );
}

function GroupRow({ name, events }: { readonly name: GroupName; readonly events: readonly Recorded[] }): VNode {
  const newest = events[0]!;
  const oldest = events.at(-1)!;
  return (
    <li>
      <details>
        <summary>
          <Glyph look={GROUP_LOOKS[name]} />
          <span class="breakable">
            <Words sentence={summarize(name, events)} />
          </span>
          <span class="when">
            <Time at={newest.time} />
          </span>
        </summary>
        <EventList events={events.slice(0, GROUP_SHOWN_MAX)} />
        {events.length <= GROUP_SHOWN_MAX ? null : (
          <a href={`/activity?show=everything&from=${oldest.position}&to=${newest.position}`}>
            All {grouped(events.length)} events
          </a>
        )}
      </details>
    </li>
  );
}

/** Such as `41 clicks on 6 links, 7 by bots · 118 delivered · 3 to be retried`. */
function summarize(name: GroupName, events: readonly Recorded[]): Sentence {
  const count = (type: EventType): number => events.filter((event) => event.type === type).length;
  switch (name) {
    case "clicks":
      return summarizeClicks(events);
    case "sends": {
      const sent = count("DirectMessageSent");
      return sent === 0
        ? say`${counted(count("DirectMessageAttempted"), "message")} on the way`
        : say`${counted(sent, "message")} sent`;
    }
    case "skips":
      return say`${counted(events.length, "recipient")} skipped`;
    case "imports":
      return say`${counted(count("RecipientAdded"), "recipient")} imported`;
    case "service":
      return say`${counted(events.length, "event")} of the service itself`;
  }
}

function summarizeClicks(events: readonly Recorded[]): Sentence {
  const clicks = events.filter((event) => event.type === "LinkClicked");
  const links = [...new Set(clicks.map(({ data: { domain, short_code } }) => `${domain}/${short_code}`))];
  const [link = ""] = links;
  const bots = clicks.filter(({ data }) => data.bot).length;
  const countDispatches = (type: "DispatchSucceeded" | "DispatchSkipped" | "DispatchFailed"): number =>
    events.reduce((sum, event) => (event.type === type ? sum + dispatchesIn(event.data.requests) : sum), 0);
  const parts = [
    [
      clicks.length,
      say`${counted(clicks.length, "click")} on ${links.length === 1 ? other(link) : counted(links.length, "link")}${bots === 0 ? "" : `, ${grouped(bots)} by bots`}`,
    ],
    [countDispatches("DispatchSucceeded"), [`${grouped(countDispatches("DispatchSucceeded"))} delivered`]],
    [countDispatches("DispatchSkipped"), [`${grouped(countDispatches("DispatchSkipped"))} not sent`]],
    [countDispatches("DispatchFailed"), [`${grouped(countDispatches("DispatchFailed"))} to be retried`]],
  ] as const;
  return join(
    parts.flatMap(([number, words]) => (number === 0 ? [] : [words])),
    " · ",
  );
}

function dispatchesIn(requests: readonly { readonly sources: Sources }[]): number {
  return requests.reduce((sum, { sources }) => sum + positionsOf(sources).length, 0);
}

/** `1 click`, `1,200 clicks` */
function counted(number: number, noun: string): string {
  return `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
}
