/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../events/catalog.ts";
import { ConsoleDocument, grouped, type Shown } from "./document.tsx";
import { EventList, spaced } from "./event-list.tsx";
import { Time } from "./time.tsx";

/** Which events are shown; all of it is in the page's address. */
export interface AuditFilter {
  readonly type?: string;
  readonly stream?: string;
  /** Only events before this position. */
  readonly before?: number;
}

export interface AuditView {
  readonly shown: Shown;
  readonly filter: AuditFilter;
  /** All types that there are. */
  readonly types: readonly string[];
  /** Newest first. */
  readonly events: readonly Recorded[];
  /** Whether older events fit the filter too. */
  readonly hasOlder: boolean;
}

/** The log, newest first, by type and stream. */
export function auditPage({ shown, filter, types, events, hasOlder }: AuditView): VNode {
  return (
    <ConsoleDocument title="Audit" path="/audit" shown={shown}>
      <h1>Audit</h1>
      <form class="filter" method="get" action="/audit">
        <label>
          Type{" "}
          <select name="type">
            <option value="">all</option>
            {types.map((type) => (
              <option value={type} selected={type === filter.type}>
                {spaced(type)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Stream <input name="stream" value={filter.stream ?? ""} maxLength={300} placeholder="all" />
        </label>
        <button>Show</button>
      </form>
      <form class="filter" method="get" action="/audit">
        <label>
          Position <input name="position" type="number" min={1} max={Math.max(1, shown.position)} required />
        </label>
        <button>Open</button>
      </form>
      <EventList events={events} />
      {hasOlder ? (
        <p>
          <a href={olderHref(filter, events)}>Older events</a>
        </p>
      ) : null}
    </ConsoleDocument>
  );
}

function olderHref({ type, stream }: AuditFilter, events: readonly Recorded[]): string {
  const query = new URLSearchParams();
  if (type !== undefined) query.set("type", type);
  if (stream !== undefined) query.set("stream", stream);
  query.set("before", String(events.at(-1)?.position ?? 1));
  return `/audit?${query}`;
}

export interface EventView {
  readonly shown: Shown;
  readonly event: Recorded;
  /** The hash of the event before it; of position 1, 64 zeros. */
  readonly previousHash: string;
}

/** One event with all that the log holds of it. */
export function eventPage({ shown, event, previousHash }: EventView): VNode {
  const { position, type, stream, version, time, id, hash, meta, data } = event;
  const rows: readonly (readonly [string, VNode | string])[] = [
    ["time", <Time at={time} />],
    ["stream", <bdi>{`${stream}, version ${version}`}</bdi>],
    ["id", <code>{id}</code>],
    ["caller", <bdi>{meta.caller ?? "not recorded"}</bdi>],
    ["request id", <code>{meta.request_id ?? "none"}</code>],
    ["trace", <code>{meta.traceparent ?? "none"}</code>],
    ["hash", <code>{hash}</code>],
    ["previous hash", <code>{previousHash}</code>],
  ];
  return (
    <ConsoleDocument title={`Event ${position}`} path="/audit" shown={shown}>
      <h1>
        {spaced(type)} <small>at position {grouped(position)}</small>
      </h1>
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <h2>Data</h2>
      <pre tabIndex={0}>{JSON.stringify(data, null, 2)}</pre>
      <p>
        {position > 1 ? <a href={`/audit?position=${position - 1}`}>Previous</a> : null}{" "}
        {position < shown.position ? <a href={`/audit?position=${position + 1}`}>Next</a> : null}{" "}
        <a href={`/audit?${new URLSearchParams({ stream })}`}>Events of this stream</a>
      </p>
    </ConsoleDocument>
  );
}
