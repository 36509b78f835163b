/** @jsxImportSource preact */
import type { VNode } from "preact";
import { EVENT_TYPES, type EventType, type Recorded } from "../../events/catalog.ts";
import { outcomesOf } from "../history/outcomes.ts";
import { eventHref } from "./addresses.ts";
import { ConsoleDocument, grouped } from "./document.tsx";
import { EventList, spaced } from "./event-list.tsx";
import { EventSentence } from "./event-sentence.tsx";
import { FindForm } from "./find.tsx";
import { Time } from "./time.tsx";
import { WhatBecame } from "./what-became.tsx";
import { proofOf } from "./verification.tsx";
import { defined, newestEvents, numberOf, oneOf, textOf, type View } from "./view.ts";

const EVENTS_SHOWN = 100;

/** Which events are shown; all of it is in the page's address. */
interface AuditFilter {
  readonly type?: EventType;
  readonly stream?: string;
  /** Only events before this position. */
  readonly before?: number;
}

/** The log, newest first, by type and stream. */
export async function auditPage(view: View): Promise<VNode> {
  const filter = filterOf(view);
  const { type, stream, before } = filter;
  const found = await newestEvents(view, {
    limit: EVENTS_SHOWN + 1,
    ...(type === undefined ? {} : { types: [type] }),
    ...(stream === undefined ? {} : { stream }),
    ...(before === undefined ? {} : { to: before - 1 }),
  });
  const shown = found.slice(0, EVENTS_SHOWN);
  return (
    <ConsoleDocument title="Audit" path="/audit" view={view}>
      <h1>Audit</h1>
      <FindForm />
      {await proofOf(view)}
      <form class="filter" method="get" action="/audit">
        <label>
          Type{" "}
          <select name="type">
            <option value="">all</option>
            {EVENT_TYPES.map((known) => (
              <option value={known} selected={known === type}>
                {spaced(known)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Stream <input name="stream" value={stream ?? ""} maxLength={300} placeholder="all" />
        </label>
        <label>
          Before position <input name="before" type="number" min={1} value={before} placeholder="end" />
        </label>
        <button>Show</button>
      </form>
      <EventList events={shown} />
      {found.length > EVENTS_SHOWN ? (
        <p>
          <a href={olderHref(filter, shown)}>Older events</a>
        </p>
      ) : null}
    </ConsoleDocument>
  );
}

function filterOf(view: View): AuditFilter {
  return defined({
    type: oneOf(view, "type", EVENT_TYPES),
    stream: textOf(view, "stream"),
    before: numberOf(view, "before"),
  });
}

function olderHref({ type, stream }: AuditFilter, events: readonly Recorded[]): string {
  const query = new URLSearchParams();
  if (type !== undefined) query.set("type", type);
  if (stream !== undefined) query.set("stream", stream);
  query.set("before", String(events.at(-1)?.position ?? 1));
  return `/audit?${query}`;
}

/** One event with all that the log holds of it, what became of what it requested, and the hash of the event before it: of position 1, 64 zeros. */
export async function eventPage(view: View): Promise<VNode | undefined> {
  const asked = Number(/^\d{1,15}$/.exec(view.parameters["position"] ?? "")?.[0] ?? 0);
  if (asked < 1) return undefined;
  const [event] = await newestEvents(view, { from: asked, to: asked, limit: 1 });
  if (event === undefined) return undefined;
  const reading = { store: view.store, to: view.position, onProgress: () => {} };
  const outcomes = await outcomesOf(reading, event);
  const previousHash = (await view.store.hashAt(asked - 1)) ?? "";
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
    <ConsoleDocument title={`Event ${position}`} path="/audit" view={view}>
      <h1>
        {spaced(type)} <small>at position {grouped(position)}</small>
      </h1>
      <EventSentence event={event} isWhole />
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <WhatBecame id={id} outcomes={outcomes} />
      <h2>Data</h2>
      <pre tabIndex={0}>{JSON.stringify(data, null, 2)}</pre>
      <p>
        {position > 1 ? <a href={eventHref(position - 1)}>Previous</a> : null}{" "}
        {position < view.position ? <a href={eventHref(position + 1)}>Next</a> : null}{" "}
        <a href={`/audit?${new URLSearchParams({ stream })}`}>Events of this stream</a>
      </p>
    </ConsoleDocument>
  );
}
