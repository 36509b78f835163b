/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../events/catalog.ts";
import { grouped } from "./document.tsx";
import { Time } from "./time.tsx";

/** Events, one a line, each leading to its own page. */
export function EventList({ events }: { readonly events: readonly Recorded[] }): VNode {
  if (events.length === 0) return <p class="empty">No events.</p>;
  return (
    <ol class="events">
      {events.map(({ position, time, type, stream, meta }) => (
        <li>
          <a href={`/audit/${position}`}>{grouped(position)}</a> <Time at={time} /> <b>{spaced(type)}</b>{" "}
          <span class="quiet">
            <bdi>{stream}</bdi>
            {meta.caller === undefined ? null : (
              <>
                {" by "}
                <bdi>{meta.caller}</bdi>
              </>
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** `LinkClicked` as `Link clicked`. */
export function spaced(type: string): string {
  const words = type.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ");
  return words.charAt(0) + words.slice(1).toLowerCase();
}
