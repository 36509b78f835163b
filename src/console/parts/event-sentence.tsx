/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { EventType, Recorded } from "../../../events/event-types-and-codec.ts";
import { nameRun } from "../../history/run-list-and-page.ts";
import {
  capitalize,
  cutSentence,
  formatCaller,
  isErased,
  toSentence,
  toShortSentence,
} from "../../history/event-sentences.ts";
import { grouped } from "../../platform/format-numbers-and-lists.ts";
import { findKnownHandle } from "../../recipients/recipient-list-and-page.ts";
import {
  campaignHref,
  eventHref,
  hrefForLink,
  linkHref,
  recipientHref,
  runHref,
  type RecipientNames,
} from "../hrefs.ts";
import type { View } from "../page-context.ts";
import { Icon, type IconName, type Tone } from "./icon-and-badge.tsx";
import { Time } from "./time.tsx";
import { A } from "./links-forms-and-tabs.tsx";

/** A sentence about an event: reachlog's words, and mentions of recipients, links, runs and times. */
type Sentence = ReturnType<typeof toSentence>;
type Mention = Exclude<Sentence[number], string>;

/**
 * Maximum length of a sentence in a list, in characters. Texts from outside may have thousands, and a page has a
 * hundred sentences.
 */
const CHARACTERS_SHOWN = 240;

interface EventSentenceProps {
  readonly view: View<"runs">;
  readonly event: Recorded;
  /** True to show the whole sentence without cutting it. */
  readonly isWhole?: boolean;
}

/**
 * Shows an event as a short sentence with links to what it names; with `isWhole`, with its data and ids. Texts from
 * outside look different.
 */
export function EventSentence({ view, event, isWhole = false }: EventSentenceProps): VNode {
  const sentence = capitalize(isWhole ? toSentence(event) : toShortSentence(event));
  const { shown, isCut } = cutSentence(sentence, isWhole ? Infinity : CHARACTERS_SHOWN);
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

interface WordsProps {
  readonly view: View<"runs">;
  readonly sentence: Sentence;
  /** True to leave out links, for example within a button. */
  readonly isPlain?: boolean;
}

/** Renders a sentence with links to what it names. */
export function Words({ view, sentence, isPlain = false }: WordsProps): VNode {
  return (
    <>
      {sentence.map((part) =>
        typeof part === "string" ? part : <Named view={view} mention={part} isPlain={isPlain} />,
      )}
    </>
  );
}

/** Matches a time as the log writes it, ISO 8601 in UTC. A time that came from outside may be any text. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

function Named({ view, mention, isPlain }: { view: View<"runs">; mention: Mention; isPlain: boolean }): VNode {
  if (mention.kind === "time" && MOMENT.test(mention.at)) return <Time at={mention.at} />;
  if (mention.kind === "position" && !isPlain)
    return <A href={eventHref(mention.position)}>{grouped(mention.position)}</A>;
  if (mention.kind === "recipient" && isErased(mention.recipient)) return <span class="quiet">erased</span>;
  const short = shortName(view, mention);
  return (
    <OptionalLink href={isPlain ? undefined : hrefFor(mention)}>
      {short === undefined ? <bdi>{mention.text}</bdi> : <bdi title={mention.text}>{short}</bdi>}
    </OptionalLink>
  );
}

/**
 * Returns the short form of a long name, which the linked page shows in full. Undefined if the name is not shortened.
 */
function shortName(view: View<"runs">, mention: Mention): string | undefined {
  if (mention.kind === "recipient") {
    const username = mention.recipient.username ?? findKnownHandle(view, mention.recipient);
    return username === undefined ? undefined : `@${username}`;
  }
  if (mention.kind !== "run") return undefined;
  // The name keeps the first letter of the text that it replaces, which may be a capital at the beginning of a
  // sentence.
  return mention.text.charAt(0) + nameRun(view.state("runs"), mention.run_id).slice(1);
}

/** Name of a run, such as `Run 12`, with a link to its page. */
export function RunName({ view, runId }: { readonly view: View<"runs">; readonly runId: string }): VNode {
  return (
    <A href={runHref(runId)}>
      <bdi title={runId}>{nameRun(view.state("runs"), runId)}</bdi>
    </A>
  );
}

/** Name of a run with the time of its start. */
export function RunLink({ view, runId }: { readonly view: View<"runs">; readonly runId: string }): VNode {
  return (
    <>
      <RunName view={view} runId={runId} />
      <Time before=", " at={view.state("runs").started.get(runId)?.started_at} />
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
    case "campaign":
      return campaignHref(mention.name);
    default:
      return undefined;
  }
}

/** Shows the name of a link, linked to its page. */
export function LinkName({ link }: { readonly link: string }): VNode {
  return (
    <A href={hrefForLink(link)}>
      <bdi>{link}</bdi>
    </A>
  );
}

/** Shows the name of a recipient, linked to their page if there is one. */
export function RecipientLink({ recipient, name }: { recipient: RecipientNames; name: string }): VNode {
  return (
    <OptionalLink href={recipientHref(recipient)}>
      <bdi>{name}</bdi>
    </OptionalLink>
  );
}

/** A link; or only its content, if there is no page to link to. */
export function OptionalLink({ href, children }: { href: string | undefined; children: ComponentChildren }): VNode {
  return href === undefined ? <>{children}</> : <A href={href}>{children}</A>;
}

type Look = readonly [icon: IconName, tone: Tone];

/** Icon and tone of events in a list, by type. Types that are not listed here are routine. */
const LOOKS: Partial<Record<EventType, Look>> = {
  LinkClicked: ["mousePointer2", "info"],
  PersonalLinkClicked: ["mousePointer2", "info"],
  ConversionRecorded: ["check", "good"],
  ConversionReversed: ["rotateCw", "warn"],
  CampaignCreated: ["send", "accent"],
  CampaignChanged: ["send", "neutral"],
  CampaignEnded: ["pause", "neutral"],
  LinkAdded: ["link", "neutral"],
  NotificationRequested: ["bell", "info"],
  MessageRequested: ["send", "info"],
  RecipientAdded: ["upload", "accent"],
  ConsentRecorded: ["check", "good"],
  RecipientSuppressed: ["ban", "warn"],
  RecipientHeld: ["pause", "warn"],
  RecipientReleased: ["play", "accent"],
  RecipientRetryAllowed: ["rotateCw", "accent"],
  DirectMessageReceived: ["reply", "good"],
  DirectMessagesSeen: ["eye", "good"],
  DirectMessageAttempted: ["send", "neutral"],
  DirectMessageSent: ["send", "accent"],
  DirectMessageSkipped: ["skipForward", "neutral"],
  DirectMessageFailed: ["triangleAlert", "bad"],
  DirectMessageInDoubt: ["circleQuestionMark", "warn"],
  DirectMessageLeft: ["circleQuestionMark", "neutral"],
  MessagesLookedUp: ["search", "neutral"],
  RunStarted: ["play", "accent"],
  RunStopRequested: ["pause", "warn"],
  RecipientRequested: ["play", "accent"],
  RecipientNotReached: ["skipForward", "warn"],
  RunFinished: ["check", "good"],
  DryRunFinished: ["eye", "accent"],
  RunAbandoned: ["triangleAlert", "bad"],
  RunRefused: ["triangleAlert", "warn"],
  DispatchSucceeded: ["check", "good"],
  DispatchFailed: ["clock", "warn"],
  DispatchInDoubt: ["circleQuestionMark", "warn"],
  DispatchAbandoned: ["triangleAlert", "bad"],
  DispatchRetryRequested: ["rotateCw", "accent"],
  DispatchDiscarded: ["trash", "neutral"],
  DispatchSettled: ["check", "neutral"],
  DispatchLost: ["triangleAlert", "bad"],
  CircuitOpened: ["pause", "warn"],
  CircuitClosed: ["check", "good"],
  ChannelSuspended: ["pause", "bad"],
  ChannelResumed: ["play", "good"],
  AccountAuthorized: ["keyRound", "accent"],
  TokenUsed: ["keyRound", "neutral"],
  TokenRefreshFailed: ["triangleAlert", "bad"],
  AuthenticationsFailed: ["triangleAlert", "warn"],
  KeyRotated: ["keyRound", "accent"],
  LogVerified: ["shieldCheck", "good"],
  LogRestored: ["archive", "warn"],
  LogLossAccepted: ["triangleAlert", "bad"],
  BackupMade: ["archive", "good"],
  PersonForgotten: ["trash", "warn"],
};

/** True if events of the type report a problem, or a possible one. */
export function isProblem(type: EventType): boolean {
  const [, tone] = LOOKS[type] ?? [];
  return tone === "bad" || tone === "warn";
}

/** Returns the icon and the color tone that lists show for events of this type. */
export function findLook(type: EventType): Look {
  return LOOKS[type] ?? ["clock", "neutral"];
}

function toLook(event: Recorded): Look {
  if (event.type === "LinkClicked" && event.data.bot) return ["bot", "neutral"];
  if (event.type === "LogVerified" && event.data.result === "broken") return ["triangleAlert", "bad"];
  return findLook(event.type);
}

export function Glyph({ look: [icon, tone] }: { readonly look: Look }): VNode {
  return (
    <span class={`glyph ${tone}`}>
      <Icon name={icon} />
    </span>
  );
}

interface EventListProps {
  readonly view: View<"runs">;
  readonly events: readonly Recorded[];
  /** True if the list is below a heading with the day, so that it shows only times of day. */
  readonly isOfDay?: boolean;
}

/** Lists events as sentences, one on each line, with a link to each event's page. */
export function EventList({ view, events, isOfDay = false }: EventListProps): VNode {
  if (events.length === 0) return <p class="empty">No events.</p>;
  return (
    <ol class="lines">
      {events.map((event) => (
        <li class="line">
          <span class="t">
            <A href={eventHref(event.position)}>
              <Time at={event.time} as={isOfDay ? "clock" : "short"} />
            </A>
          </span>
          <Glyph look={toLook(event)} />
          <EventSentence view={view} event={event} />
        </li>
      ))}
    </ol>
  );
}

/** Names the caller who caused an event. Renders nothing if the caller is not known. */
export function By({ caller }: { readonly caller: string | undefined }): VNode | null {
  if (caller === undefined) return null;
  return (
    <>
      {" by "}
      <bdi>{formatCaller(caller)}</bdi>
    </>
  );
}
