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
import { A } from "./link.tsx";

/**
 * Characters of a sentence that a list shows: text from outside may be thousands long, and a hundred sentences are on a
 * page.
 */
const CHARACTERS_SHOWN = 400;

interface EventSentenceProps {
  readonly view: View<"runs">;
  readonly event: Recorded;
  /** True if the sentence is not cut. */
  readonly isWhole?: boolean;
}

/** An event as a sentence, with links to what it names. Text from outside is set apart. */
export function EventSentence({ view, event, isWhole = false }: EventSentenceProps): VNode {
  const { shown, isCut } = cut(capitalize(toSentence(event)), isWhole ? Infinity : CHARACTERS_SHOWN);
  return (
    <p class="sentence">
      <Words view={view} sentence={shown} />
      {isCut ? (
        <>
          {"… "}
          <A href={eventHref(event.position)}>whole event</A>
        </>
      ) : null}
    </p>
  );
}

/** Capitalises a sentence that begins with a word of ours, or with a run. A name at the beginning stays as it is. */
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
export function Words({ view, sentence }: { readonly view: View<"runs">; readonly sentence: Sentence }): VNode {
  return <>{sentence.map((part) => (typeof part === "string" ? part : <Named view={view} mention={part} />))}</>;
}

/** ISO 8601 in UTC, as the log writes it. A time that was given from outside may be any text. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

function Named({ view, mention }: { readonly view: View<"runs">; readonly mention: Mention }): VNode {
  if (mention.kind === "time" && MOMENT.test(mention.at)) return <Time at={mention.at} isExact />;
  if (mention.kind === "position") return <A href={eventHref(mention.position)}>{grouped(mention.position)}</A>;
  if (mention.kind === "recipient" && isErased(mention.recipient)) return <span class="quiet">{ERASED}</span>;
  const short = shortName(view, mention);
  return (
    <OptionalLink href={hrefFor(mention)}>
      {short === undefined ? <bdi>{mention.text}</bdi> : <bdi title={mention.text}>{short}</bdi>}
    </OptionalLink>
  );
}

const RUN_DIGITS = 8;

/** The short form of a long name, which the linked page shows in full. Undefined if the name is not shortened. */
function shortName(view: View<"runs">, mention: Mention): string | undefined {
  if (mention.kind === "recipient" && mention.recipient.username !== undefined) return `@${mention.recipient.username}`;
  return mention.kind === "run"
    ? mention.text.replace(mention.run_id, () => formatRun(view, mention.run_id))
    : undefined;
}

/** The number of a run among all that began, or the end of its id if it has no number. */
export function formatRun(view: View<"runs">, runId: string): string {
  const known = view.state("runs").started.get(runId);
  if (known !== undefined) return grouped(known.number);
  return EVENT_ID.test(runId) ? `…${runId.slice(-RUN_DIGITS)}` : runId;
}

/** `Run 12, 2 hours ago`, with a link to the run's page. */
export function RunLink({ view, runId }: { readonly view: View<"runs">; readonly runId: string }): VNode {
  const startedAt = view.state("runs").started.get(runId)?.started_at;
  return (
    <>
      <A href={runHref(runId)}>
        Run <bdi title={runId}>{formatRun(view, runId)}</bdi>
      </A>
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

/** Cuts a sentence to `most` characters, also within a text from outside, which is usually the longest part. */
function cut(sentence: Sentence, most: number): { readonly shown: Sentence; readonly isCut: boolean } {
  const shown: (string | Mention)[] = [];
  let left = most;
  for (const part of sentence) {
    const text = typeof part === "string" ? part : part.text;
    if (text.length > left) {
      // Never cuts a character in half.
      const beginning = text.slice(0, left).replace(/[\ud800-\udbff]$/, "");
      shown.push(typeof part === "string" ? beginning : { ...part, text: beginning });
      return { shown, isCut: true };
    }
    shown.push(part);
    left -= text.length;
  }
  return { shown, isCut: false };
}

/** Cuts a text to `most` characters. If it was longer, adds an ellipsis and `rest`. */
export function shorten(text: string, most: number, rest = ""): string {
  const { shown, isCut } = cut([text], most);
  return isCut ? `${formatSentence(shown)}…${rest}` : text;
}

/** The name of a link, with a link to its page. */
export function LinkName({ link }: { readonly link: string }): VNode {
  return (
    <A href={hrefForLink(link)}>
      <bdi>{link}</bdi>
    </A>
  );
}

/** The name of a recipient, with a link to their page if there is one. */
export function RecipientLink({ recipient, name }: { recipient: Recipient; name: string }): VNode {
  return (
    <OptionalLink href={recipientHref(recipient)}>
      <bdi>{name}</bdi>
    </OptionalLink>
  );
}

/** A link, or only its content if there is no page to link to. */
export function OptionalLink({ href, children }: { href: string | undefined; children: ComponentChildren }): VNode {
  return href === undefined ? <>{children}</> : <A href={href}>{children}</A>;
}

export type Look = readonly [icon: IconName, tone: Tone];

/** The look of events in a list, by type. Types that are not named here are routine. */
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

/** True if events of the type report something that is wrong, or may be. */
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

/** Events in sentences, one a line, each with a link to its page. */
export function EventList({ view, events }: { view: View<"runs">; events: readonly Recorded[] }): VNode {
  if (events.length === 0) return <p class="empty">No events.</p>;
  return (
    <ol class="events">
      {events.map((event) => (
        <EventRow view={view} event={event} />
      ))}
    </ol>
  );
}

export function EventRow({ view, event }: { readonly view: View<"runs">; readonly event: Recorded }): VNode {
  return (
    <li>
      <Glyph look={toLook(event)} />
      <EventSentence view={view} event={event} />
      <div class="when">
        <A href={eventHref(event.position)}>
          <Time at={event.time} />
        </A>
        <By caller={event.meta.caller} />
      </div>
    </li>
  );
}

/** The caller who did something. Renders nothing if the caller is not known. */
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
