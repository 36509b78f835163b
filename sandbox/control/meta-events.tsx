/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { MetaEvent } from "../meta.ts";
import { Sheet } from "./sheet.tsx";

/** An event with its number among all counted events, from 1. */
export interface NumberedEvent {
  readonly number: number;
  readonly event: MetaEvent;
}

const HEAD = ["time", "event", "id", "page", "known of the person"] as const;

/** The events that Meta counts, newest first. */
export function MetaEvents({ events }: { readonly events: readonly NumberedEvent[] }): VNode {
  const rows = events.toReversed().map(({ number, event }) => ({
    id: `meta-${number}`,
    cells: {
      time: <EventTime seconds={event.event_time} />,
      event: <bdi>{event.event_name}</bdi>,
      id: <bdi>{event.event_id ?? "none"}</bdi>,
      page: <bdi>{event.event_source_url ?? "none"}</bdi>,
      "known of the person": <bdi>{Object.keys(event.user_data).join(", ")}</bdi>,
    },
  }));
  return <Sheet label="Events at Meta" head={HEAD} rows={rows} />;
}

/** The time in the event, not that of its arrival. */
function EventTime({ seconds }: { readonly seconds: number }): VNode {
  const moment = new Date(seconds * 1000).toISOString();
  return (
    <time dateTime={moment}>
      {moment.slice(0, 10)} {moment.slice(11, 19)}
    </time>
  );
}
