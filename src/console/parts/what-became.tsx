/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { ChannelOutcome } from "../../history/outcomes.ts";
import { EventList } from "./event-list.tsx";

interface WhatBecameProps {
  /** Id of what requested it. */
  readonly id: string;
  readonly outcomes: readonly ChannelOutcome[];
}

/** What became of what an event requested, channel by channel; nothing for one that requested nothing. */
export function WhatBecame({ id, outcomes }: WhatBecameProps): VNode | null {
  if (outcomes.length === 0) return null;
  return (
    <section aria-labelledby="what-became">
      <h2 id="what-became">What became of it</h2>
      {outcomes.map(({ channel, events, isWhole }) => (
        <>
          <h3>{channel}</h3>
          {events.length > 0 ? <EventList events={events} /> : null}
          {isWhole && events.length === 0 ? <p class="empty">No attempt is recorded yet.</p> : null}
          {isWhole ? null : (
            <p>
              This channel was far behind: <code>reachlog deliveries show {id}</code> looks further.
            </p>
          )}
        </>
      ))}
    </section>
  );
}
