/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../../events/catalog.ts";
import { eventHref } from "../addresses.ts";
import { grouped } from "../document.tsx";
import { EventSentence } from "./event-sentence.tsx";
import { Time } from "./time.tsx";

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
