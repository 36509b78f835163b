/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { EventType, Recorded } from "../../../events/catalog.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { ERASED } from "../../../events/encryption.ts";
import { EVENT_ID } from "../../history/find-event.ts";
import { toSentence } from "../../history/words.ts";
import { formatCaller, formatSentence, type Mention, type Sentence } from "../../history/words/sentence.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { eventHref, hrefForLink, isErased, linkHref, recipientHref, runHref } from "../hrefs.ts";
import type { View } from "../page-context.ts";
import { Icon, type IconName, type Tone } from "./icon.tsx";
import { Time } from "./time.tsx";

/** Characters of a sentence that a list shows: texts of others may be thousands long, and a hundred are on a page. */
const CHARACTERS_SHOWN = 400;

interface EventSentenceProps {
  readonly view: View;
  readonly event: Recorded;
  /** However long it is. */
  readonly isWhole?: boolean;
}

/** What an event says, in a sentence that leads to what it names, and sets apart what others wrote. */
export function EventSentence({ view, event, isWhole = false }: EventSentenceProps): VNode {
  const { shown, isCut } = cut(capitalize(toSentence(event)), isWhole ? Infinity : CHARACTERS_SHOWN);
  return (
    <p class="sentence">
      <Words view={view} sentence={shown} />
      {isCut ? (
        <>
          {"… "}
          <a href={eventHref(event.position)}>whole event</a>
        </>
      ) : null}
    </p>
  );
}

/** A sentence that begins with a word of ours, as a run does, begins with a capital. */
function capitalize(sentence: Sentence): Sentence {
  const first = sentence.findIndex((part) => part !== "");
  return sentence.map((part, at) => {
    if (at !== first) return part;
    if (typeof part === "string") return toCapital(part);
    return part.kind === "run" ? { ...part, text: toCapital(part.text) } : part;
  });
}

export function toCapital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A sentence with links to what it names. */
export function Words({ view, sentence }: { readonly view: View; readonly sentence: Sentence }): VNode {
  return <>{sentence.map((part) => (typeof part === "string" ? part : <Named view={view} mention={part} />))}</>;
}

/** ISO 8601 in UTC, as the log writes it; what others wrote may be anything. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

function Named({ view, mention }: { readonly view: View; readonly mention: Mention }): VNode {
  if (mention.kind === "time" && MOMENT.test(mention.at)) return <Time at={mention.at} isExact />;
  if (mention.kind === "position") return <a href={eventHref(mention.position)}>{grouped(mention.position)}</a>;
  if (mention.kind === "recipient" && isErased(mention.recipient)) return <span class="quiet">{ERASED}</span>;
  const short = shortName(view, mention);
  return (
    <OptionalLink href={hrefFor(mention)}>
      {short === undefined ? <bdi>{mention.text}</bdi> : <bdi title={mention.text}>{short}</bdi>}
    </OptionalLink>
  );
}

const RUN_DIGITS = 8;

/** What is shown of a name that is long, and whole on the page that it leads to; undefined: all of it. */
function shortName(view: View, mention: Mention): string | undefined {
  if (mention.kind === "recipient" && mention.recipient.username !== undefined) return `@${mention.recipient.username}`;
  return mention.kind === "run"
    ? mention.text.replace(mention.run_id, () => formatRun(view, mention.run_id))
    : undefined;
}

/** A run's number among all that began; of one that has none, the end of its id. */
export function formatRun(view: View, runId: string): string {
  const known = view.state("runs").started.get(runId);
  if (known !== undefined) return grouped(known.number);
  return EVENT_ID.test(runId) ? `…${runId.slice(-RUN_DIGITS)}` : runId;
}

/** `Run 12, 2 hours ago`, which leads to the run's page. */
export function RunLink({ view, runId }: { readonly view: View; readonly runId: string }): VNode {
  const startedAt = view.state("runs").started.get(runId)?.started_at;
  return (
    <>
      <a href={runHref(runId)}>
        Run <bdi title={runId}>{formatRun(view, runId)}</bdi>
      </a>
      <Time before=", " at={startedAt} />
    </>
  );
}

function hrefFor(mention: Mention): string | undefined {
  switch (mention.kind) {
    case "recipient":
      return recipientHref(mention.recipient);
    case "link":
      return linkHref(mention.domain, mention.short_code);
    case "run":
      return runHref(mention.run_id);
    default:
      return undefined;
  }
}

/** The beginning of a sentence: what is longest in it is what others wrote, and that is cut too. */
function cut(sentence: Sentence, most: number): { readonly shown: Sentence; readonly isCut: boolean } {
  const shown: (string | Mention)[] = [];
  let left = most;
  for (const part of sentence) {
    const text = typeof part === "string" ? part : part.text;
    if (text.length > left) {
      // No character is cut in half.
      const beginning = text.slice(0, left).replace(/[\ud800-\udbff]$/, "");
      shown.push(typeof part === "string" ? beginning : { ...part, text: beginning });
      return { shown, isCut: true };
    }
    shown.push(part);
    left -= text.length;
  }
  return { shown, isCut: false };
}

/** The beginning of a text where it is longer than `most`. `rest`: what is said of the rest then. */
export function shorten(text: string, most: number, rest = ""): string {
  const { shown, isCut } = cut([text], most);
  return isCut ? `${formatSentence(shown)}…${rest}` : text;
}

/** The link by its name, which leads to its page. */
export function LinkName({ link }: { readonly link: string }): VNode {
  return (
    <a href={hrefForLink(link)}>
      <bdi>{link}</bdi>
    </a>
  );
}

/** The recipient by this name, which leads to their page where there is one. */
export function RecipientLink({ recipient, name }: { recipient: Recipient; name: string }): VNode {
  return (
    <OptionalLink href={recipientHref(recipient)}>
      <bdi>{name}</bdi>
    </OptionalLink>
  );
}

/** A link, or only its content where there is no page to link to. */
export function OptionalLink({ href, children }: { href: string | undefined; children: ComponentChildren }): VNode {
  return href === undefined ? <>{children}</> : <a href={href}>{children}</a>;
}

export type Look = readonly [icon: IconName, tone: Tone];

/** How an event looks in a list. What is not named here is routine. */
const LOOKS: Partial<Record<EventType, Look>> = {
  LinkClicked: ["mouse-pointer-2", "info"],
  PersonalLinkClicked: ["mouse-pointer-2", "info"],
  LinkAdded: ["link", "neutral"],
  NotificationRequested: ["bell", "info"],
  MessageRequested: ["send", "info"],
  RecipientAdded: ["upload", "accent"],
  ConsentRecorded: ["check", "good"],
  RecipientSuppressed: ["ban", "warn"],
  RecipientHeld: ["pause", "warn"],
  RecipientReleased: ["play", "accent"],
  RecipientRetryAllowed: ["rotate-cw", "accent"],
  DirectMessageReceived: ["reply", "good"],
  DirectMessageAttempted: ["send", "neutral"],
  DirectMessageSent: ["send", "accent"],
  DirectMessageSkipped: ["skip-forward", "neutral"],
  DirectMessageFailed: ["triangle-alert", "bad"],
  DirectMessageInDoubt: ["circle-question-mark", "warn"],
  RunStarted: ["play", "accent"],
  RunStopRequested: ["pause", "warn"],
  RunFinished: ["check", "good"],
  DryRunFinished: ["eye", "accent"],
  RunAbandoned: ["triangle-alert", "bad"],
  RunRefused: ["triangle-alert", "warn"],
  DispatchSucceeded: ["check", "good"],
  DispatchFailed: ["clock", "warn"],
  DispatchInDoubt: ["circle-question-mark", "warn"],
  DispatchAbandoned: ["triangle-alert", "bad"],
  DispatchRetryRequested: ["rotate-cw", "accent"],
  DispatchDiscarded: ["trash", "neutral"],
  DispatchSettled: ["check", "neutral"],
  CircuitOpened: ["pause", "warn"],
  CircuitClosed: ["check", "good"],
  ChannelSuspended: ["pause", "bad"],
  ChannelResumed: ["play", "good"],
  AccountAuthorized: ["key-round", "accent"],
  TokenUsed: ["key-round", "neutral"],
  TokenRefreshFailed: ["triangle-alert", "bad"],
  AuthenticationsFailed: ["triangle-alert", "warn"],
  KeyRotated: ["key-round", "accent"],
  LogVerified: ["shield-check", "good"],
  LogRestored: ["archive", "warn"],
  LogLossAccepted: ["triangle-alert", "bad"],
  BackupMade: ["archive", "good"],
  PersonForgotten: ["trash", "warn"],
};

/** Whether events of the type say that something is wrong, or may be. */
export function isProblem(type: EventType): boolean {
  const [, tone] = LOOKS[type] ?? [];
  return tone === "bad" || tone === "warn";
}

function toLook(event: Recorded): Look {
  if (event.type === "LinkClicked" && event.data.bot) return ["bot", "neutral"];
  if (event.type === "LogVerified" && event.data.result === "broken") return ["triangle-alert", "bad"];
  return LOOKS[event.type] ?? ["clock", "neutral"];
}

export function Glyph({ look: [icon, tone] }: { readonly look: Look }): VNode {
  return (
    <span class={`glyph ${tone}`}>
      <Icon name={icon} />
    </span>
  );
}

/** Events in sentences, one a line, each leading to its own page. */
export function EventList({ view, events }: { view: View; events: readonly Recorded[] }): VNode {
  if (events.length === 0) return <p class="empty">No events.</p>;
  return (
    <ol class="events">
      {events.map((event) => (
        <EventRow view={view} event={event} />
      ))}
    </ol>
  );
}

export function EventRow({ view, event }: { readonly view: View; readonly event: Recorded }): VNode {
  return (
    <li>
      <Glyph look={toLook(event)} />
      <EventSentence view={view} event={event} />
      <div class="when">
        <a href={eventHref(event.position)}>
          <Time at={event.time} />
        </a>
        <By caller={event.meta.caller} />
      </div>
    </li>
  );
}

/** Behind what the caller did; renders nothing where it is not known who did it. */
export function By({ caller }: { readonly caller: string | undefined }): VNode | null {
  if (caller === undefined) return null;
  return (
    <>
      {" by "}
      <bdi>{formatCaller(caller)}</bdi>
    </>
  );
}

/** `LinkClicked` as `Link clicked`. */
export function spaced(type: string): string {
  return toCapital(type.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase());
}
