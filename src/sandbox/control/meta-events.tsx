/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { MetaEvent } from "../meta.ts";

/** An event, and how many had come with it, itself counted. */
export interface NumberedEvent {
  readonly number: number;
  readonly event: MetaEvent;
}

const HEAD = ["time", "event", "id", "page", "known of the person"] as const;

/** What Meta counts, newest first. */
export function MetaEvents({ events }: { readonly events: readonly NumberedEvent[] }): VNode {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Events at Meta">
      <table>
        <thead>
          <tr>
            {HEAD.map((head) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {events.toReversed().map(({ number, event }) => (
            <tr id={`meta-${number}`}>
              <td>
                <EventTime seconds={event.event_time} />
              </td>
              <th scope="row">
                <bdi>{event.event_name}</bdi>
              </th>
              <td class="breakable">
                <bdi>{event.event_id ?? "none"}</bdi>
              </td>
              <td class="breakable">
                <bdi>{event.event_source_url ?? "none"}</bdi>
              </td>
              <td>
                <bdi>{Object.keys(event.user_data).join(", ")}</bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** When it happened, as the event has it: not when it came. */
function EventTime({ seconds }: { readonly seconds: number }): VNode {
  const moment = new Date(seconds * 1000).toISOString();
  return (
    <time dateTime={moment}>
      {moment.slice(0, 10)} {moment.slice(11, 19)}
    </time>
  );
}
