/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { Recorded } from "../../../events/catalog.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { ERASED } from "../../../events/encryption.ts";
import { EVENT_ID } from "../../history/find-event.ts";
import { toSentence } from "../../history/words.ts";
import type { Mention, Sentence } from "../../history/words/phrases.ts";
import { eventHref, isErased, linkHref, recipientHref, runHref } from "../hrefs.ts";
import { grouped } from "../document.tsx";
import { Time } from "./time.tsx";

/** Characters of a sentence that a list shows: texts of others may be thousands long, and a hundred are on a page. */
const CHARACTERS_SHOWN = 400;

interface EventSentenceProps {
  readonly event: Recorded;
  /** However long it is. */
  readonly isWhole?: boolean;
}

/** What an event says, in a sentence that leads to what it names, and sets apart what others wrote. */
export function EventSentence({ event, isWhole = false }: EventSentenceProps): VNode {
  const { shown, isCut } = cut(toSentence(event), isWhole ? Infinity : CHARACTERS_SHOWN);
  return (
    <p class="sentence">
      <Words sentence={shown} />
      {isCut ? (
        <>
          {"… "}
          <a href={eventHref(event.position)}>whole event</a>
        </>
      ) : null}
    </p>
  );
}

/** A sentence with links to what it names. */
export function Words({ sentence }: { readonly sentence: Sentence }): VNode {
  return <>{sentence.map((part) => (typeof part === "string" ? part : <Named mention={part} />))}</>;
}

/** ISO 8601 in UTC, as the log writes it; what others wrote may be anything. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

function Named({ mention }: { readonly mention: Mention }): VNode {
  if (mention.kind === "time" && MOMENT.test(mention.at)) return <Time at={mention.at} isExact />;
  if (mention.kind === "position") return <a href={eventHref(mention.position)}>{grouped(mention.position)}</a>;
  if (mention.kind === "recipient" && isErased(mention.recipient)) return <span class="quiet">{ERASED}</span>;
  const short = shorten(mention);
  return (
    <OptionalLink href={hrefFor(mention)}>
      {short === undefined ? <bdi>{mention.text}</bdi> : <bdi title={mention.text}>{short}</bdi>}
    </OptionalLink>
  );
}

const RUN_DIGITS = 8;

/** What is shown of a name that is long, and whole on the page that it leads to; undefined: all of it. */
function shorten(mention: Mention): string | undefined {
  if (mention.kind === "recipient" && mention.recipient.username !== undefined) return `@${mention.recipient.username}`;
  return mention.kind === "run" && EVENT_ID.test(mention.text) ? `…${mention.text.slice(-RUN_DIGITS)}` : undefined;
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

interface OptionalLinkProps {
  /** Undefined: there is no page to link to. */
  readonly href: string | undefined;
  readonly children: ComponentChildren;
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
export function OptionalLink({ href, children }: OptionalLinkProps): VNode {
  return href === undefined ? <>{children}</> : <a href={href}>{children}</a>;
}

/** Events in sentences, one a line, each leading to its own page. */
export function EventList({ events }: { readonly events: readonly Recorded[] }): VNode {
  if (events.length === 0) return <p class="empty">No events.</p>;
  return (
    <ol class="events">
      {events.map((event) => (
        <li>
          <div class="quiet">
            <a href={eventHref(event.position)}>{grouped(event.position)}</a> <Time at={event.time} />
            <By caller={event.meta.caller} />
          </div>
          <EventSentence event={event} />
        </li>
      ))}
    </ol>
  );
}

/** Behind what the caller did; renders nothing where it is not known who did it. */
export function By({ caller }: { readonly caller: string | undefined }): VNode | null {
  if (caller === undefined) return null;
  return (
    <>
      {" by "}
      <bdi>{caller}</bdi>
    </>
  );
}

/** `LinkClicked` as `Link clicked`. */
export function spaced(type: string): string {
  const words = type.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ");
  return words.charAt(0) + words.slice(1).toLowerCase();
}
