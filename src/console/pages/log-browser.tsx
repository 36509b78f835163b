/** @jsxImportSource preact */
import type { VNode } from "preact";
import { EVENT_TYPES } from "../../../events/catalog.ts";
import { filterIn, type LogFilter, toSelection } from "../../history/log-filter.ts";
import { type ChannelOutcome, readOutcomes } from "../../history/dispatch-outcomes.ts";
import { readPage, type Selection } from "../../history/select-events.ts";
import { discloseEvent, discloseRecipient } from "../../privacy/read-audit.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { eventHref } from "../hrefs.ts";
import { ConsoleDocument, grouped, Section } from "../document.tsx";
import { Select } from "../parts/action-form.tsx";
import { EventList, spaced, EventSentence } from "../parts/events.tsx";
import { Time } from "../parts/time.tsx";
import { type DisclosingPage, newestEvents, readNumber, type View } from "../view.ts";
import { FindForm } from "./find.tsx";
import { renderProof } from "./verification.tsx";

const EVENTS_SHOWN = 100;

/** The log in sentences, newest first: all of it, or what is asked for by type, stream, recipient, link, run and time. */
export async function auditPage(view: View): Promise<DisclosingPage> {
  const filter = filterIn(view.query);
  const selection = await selected(view, filter);
  const page = (
    <ConsoleDocument title="Audit" path="/audit" view={view}>
      <h1>Audit</h1>
      <FindForm />
      {await renderProof(view)}
      <FilterForm filter={filter} />
      {typeof selection === "string" ? (
        <p class="notice fault" role="alert">
          {selection}.
        </p>
      ) : (
        await found(view, selection)
      )}
    </ConsoleDocument>
  );
  return { page, disclosed: discloseRecipient(typeof selection === "string" ? undefined : selection.recipient) };
}

/** What the filter means; a text: why it can mean nothing. */
async function selected({ store, state, settings, position }: View, filter: LogFilter): Promise<Selection | string> {
  const { timezone } = settings;
  try {
    return await toSelection(filter, { store, contacts: () => state("contacts"), timezone, position });
  } catch (fault) {
    if (fault instanceof ServiceError && fault.kind === "usage") return fault.message;
    throw fault;
  }
}

async function found(view: View, selection: Selection): Promise<VNode> {
  const { events, next } = await readPage(view.store, selection, {
    before: readNumber(view, "before"),
    limit: EVENTS_SHOWN,
  });
  const last = selection.kind === "range" ? selection.range.last : view.position;
  return (
    <>
      {events.length === 0 && next !== undefined ? (
        <p class="empty">None among those looked at.</p>
      ) : (
        <EventList events={events} />
      )}
      <p>
        {view.query.has("before") ? <a href={addressWith("/audit", view.query, {})}>Newest events</a> : null}{" "}
        {next === undefined ? null : (
          <a href={addressWith("/audit", view.query, { before: String(next) })}>Older events</a>
        )}
      </p>
      <p>
        Export all that fit:{" "}
        <a href={addressWith("/api/audit/export", view.query, { to: String(last) })} download>
          JSON Lines
        </a>
        ,{" "}
        <a href={addressWith("/api/audit/export", view.query, { to: String(last), format: "csv" })} download>
          CSV
        </a>
        .
      </p>
    </>
  );
}

function FilterForm({ filter }: { readonly filter: LogFilter }): VNode {
  const [type] = filter.types ?? [];
  return (
    <form class="filter" method="get" action="/audit">
      <Select name="type" label="Type" values={EVENT_TYPES} chosen={type} inWords={spaced} />
      {TEXT_FIELDS.map(({ name, label, placeholder }) => (
        <label>
          {label} <input name={name} value={filter[name] ?? ""} maxLength={400} placeholder={placeholder} />
        </label>
      ))}
      <button>Show</button>
    </form>
  );
}

const TEXT_FIELDS = [
  { name: "stream", label: "Stream", placeholder: "all" },
  { name: "recipient", label: "Recipient", placeholder: "@handle or id" },
  { name: "link", label: "Link", placeholder: "domain/code" },
  { name: "run", label: "Run", placeholder: "id" },
  { name: "from", label: "From", placeholder: "day, time or position" },
  { name: "to", label: "To", placeholder: "day, time or position" },
] as const;

/** An address with the same filter, and what is another there. */
function addressWith(path: string, query: URLSearchParams, other: Readonly<Record<string, string>>): string {
  const kept = [...query].filter(
    ([name, value]) => value !== "" && !["before", "as_of"].includes(name) && !(name in other),
  );
  const all = new URLSearchParams([...kept, ...Object.entries(other)]);
  return all.size === 0 ? path : `${path}?${all}`;
}

/**
 * One event with all of its data, the outcomes of its dispatches, and the hash of the previous event (for position 1: 64
 * zeros).
 */
export async function eventPage(view: View): Promise<DisclosingPage | undefined> {
  const asked = Number(/^\d{1,15}$/.exec(view.parameters["position"] ?? "")?.[0] ?? 0);
  if (asked < 1) return undefined;
  const [event] = await newestEvents(view, { from: asked, to: asked, limit: 1 });
  if (event === undefined) return undefined;
  const reading = { store: view.store, to: view.position, onProgress: () => {} };
  const outcomes = await readOutcomes(reading, event);
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
  const page = (
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
      <DispatchOutcomes id={id} outcomes={outcomes} />
      <p>
        <a href={`/api/audit/proof/${position}`} download>
          Prove it
        </a>
        .{" "}
        <span class="quiet">
          A proof for a reader without the log, who checks it with{" "}
          <code>reachlog audit check FILE --public-key KEY</code>; <code>reachlog audit head --public-key</code> prints
          the key. It proves these bytes, in which personal data is encrypted, so it stays valid after an erasure.
        </span>
      </p>
      <h2>Data</h2>
      <pre tabIndex={0}>{JSON.stringify(data, null, 2)}</pre>
      <p>
        {position > 1 ? <a href={eventHref(position - 1)}>Previous</a> : null}{" "}
        {position < view.position ? <a href={eventHref(position + 1)}>Next</a> : null}{" "}
        <a href={`/audit?${new URLSearchParams({ stream })}`}>Events of this stream</a>
      </p>
    </ConsoleDocument>
  );
  return { page, disclosed: discloseEvent(event) };
}

/** The outcomes of an event's dispatches, channel by channel; renders nothing for an event that requested none. */
function DispatchOutcomes({ id, outcomes }: { id: string; outcomes: readonly ChannelOutcome[] }): VNode | null {
  if (outcomes.length === 0) return null;
  return (
    <Section id="outcomes" title="Outcomes">
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
    </Section>
  );
}
