/** @jsxImportSource preact */
import type { VNode } from "preact";
import { EVENT_TYPES, type EventType, type Recorded } from "../../../events/catalog.ts";
import { hideCodes } from "../../networks/hide-codes.ts";
import { filterIn, type LogFilter, toSelection } from "../../history/log-filter.ts";
import { formatCaller } from "../../history/words/sentence.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { readOutcomes } from "../../history/dispatch-outcomes.ts";
import { readPage, type Selection } from "../../history/select-events.ts";
import { discloseEvent, discloseRecipient } from "../../privacy/read-audit.ts";
import { addressWith, eventHref } from "../hrefs.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { Field, Select } from "../parts/action-form.tsx";
import { EventList, EventSentence, isProblem, spaced, toCapital } from "../parts/events.tsx";
import { Lines, ROUTINE, toLines } from "../parts/news.tsx";
import { findCauses, findEffects } from "../parts/find-causes.ts";
import { Icon } from "../parts/icon.tsx";
import { renderStateChanges } from "../parts/projection-changes.tsx";
import { type NamedValue, NamedValues } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import {
  consolePage,
  type DisclosingPage,
  type PageVisit,
  readChoice,
  readOrReason,
  readNumber,
  toReading,
  type View,
} from "../page-context.ts";
import { Proof } from "../parts/proof.tsx";
import { A, PageForm } from "../parts/link.tsx";

const EVENTS_SHOWN = 100;

/** Events read for the news, which shows most of them in groups. */
const NEWS_READ = 500;

/** The event types that each view of the log shows. Undefined if it shows all types. */
const VIEWS = {
  news: EVENT_TYPES.filter((type) => !ROUTINE.includes(type)),
  everything: undefined,
  messages: EVENT_TYPES.filter((type) => /^(DirectMessage|Run|DryRun|Recipient|Consent)/.test(type)),
  clicks: ["LinkClicked", "PersonalLinkClicked", "LinkAdded"],
  deliveries: EVENT_TYPES.filter((type) => /^(Dispatch|Circuit|Channel|Notification|MessageRequested)/.test(type)),
  problems: EVENT_TYPES.filter((type) => isProblem(type)),
} as const satisfies Record<string, readonly EventType[] | undefined>;

type Shown = keyof typeof VIEWS;

const SHOWN = Object.keys(VIEWS) as readonly Shown[];

/**
 * The log in sentences, newest first: all of it, or the events selected by type, stream, recipient, link, run and time.
 */
export const activityPage = consolePage({
  reads: ({ query }) => (query.has("recipient") ? ["account", "contacts", "runs"] : ["account", "runs"]),
  render: renderActivity,
});

async function renderActivity(view: View<"account" | "contacts" | "runs">): Promise<DisclosingPage> {
  const { shown, filter } = readFilter(view);
  const { store, position } = view;
  const { timezone } = view.settings;
  const selection = await readOrReason(() =>
    toSelection(filter, { store, contacts: () => view.state("contacts"), timezone, position }),
  );
  const chosen = readChosen(view.query);
  const page = (
    <ConsoleDocument title="Activity" path="/activity" view={view}>
      <div class="head">
        <h1>Activity</h1>
        <p>All that happened, in order. Nothing is ever changed.</p>
      </div>
      <Proof view={view} />
      <ul class="tabs" aria-label="What is shown">
        {SHOWN.map((one) => (
          <li>
            <A
              href={activityHref(view.query, { show: one, type: undefined })}
              aria-current={one === shown ? "page" : undefined}
            >
              {toCapital(one)}
            </A>
          </li>
        ))}
      </ul>
      <FilterForm filter={filter} shown={shown} chosen={chosen} />
      <TypeChips query={view.query} chosen={chosen} />
      {typeof selection === "string" ? (
        <p class="notice fault" role="alert">
          {selection}.
        </p>
      ) : (
        await found(view, selection, filter, shown)
      )}
    </ConsoleDocument>
  );
  return { page, disclosed: discloseRecipient(typeof selection === "string" ? undefined : selection.recipient) };
}

/**
 * Reads from the address which events are selected. `type` wins over `show`, and `not` excludes types. By default the
 * news are shown, and with a filter everything that it selects.
 */
function readFilter(view: View): { readonly shown: Shown | undefined; readonly filter: LogFilter } {
  const { query } = view;
  const filter = filterIn(query);
  const excluded = query.getAll("not").filter((type) => type !== "");
  const isNarrowed = Object.keys(filter).some((name) => name !== "types");
  const shown =
    filter.types === undefined
      ? (readChoice(view, "show", SHOWN) ?? (isNarrowed || excluded.length > 0 ? "everything" : "news"))
      : undefined;
  const types: readonly string[] | undefined = filter.types ?? (shown === undefined ? undefined : VIEWS[shown]);
  if (excluded.length === 0) return { shown, filter: types === undefined ? filter : { ...filter, types } };
  return { shown, filter: { ...filter, types: (types ?? EVENT_TYPES).filter((type) => !excluded.includes(type)) } };
}

async function found(
  view: View<"runs">,
  selection: Selection,
  { types }: LogFilter,
  shown: Shown | undefined,
): Promise<VNode> {
  const page = await readPage(view.store, selection, {
    before: readNumber(view, "before"),
    limit: shown === "news" ? NEWS_READ : EVENTS_SHOWN,
  });
  const { events } = page;
  const lines = shown === "news" ? toLines(events) : [];
  const cut = lines.length > EVENTS_SHOWN ? lines[EVENTS_SHOWN - 1]?.events.at(-1) : undefined;
  const next = cut?.position ?? page.next;
  const last = selection.kind === "range" ? selection.range.last : view.position;
  const exported = { show: undefined, not: undefined, before: undefined, type: types, to: String(last) };
  return (
    <>
      {events.length === 0 && next !== undefined ? (
        <p class="empty">None among those looked at.</p>
      ) : shown === "news" ? (
        <Lines view={view} lines={lines.slice(0, EVENTS_SHOWN)} />
      ) : (
        <EventList view={view} events={events} />
      )}
      <p class="pages">
        {view.query.has("before") ? <A href={activityHref(view.query, {})}>Newest events</A> : null}{" "}
        {next === undefined ? null : <A href={activityHref(view.query, { before: String(next) })}>Older events</A>}
        {types?.length === 0 ? null : (
          <span>
            Export all matches:{" "}
            <A href={addressWith("/api/audit/export", view.query, exported)} download>
              JSON Lines
            </A>
            ,{" "}
            <A href={addressWith("/api/audit/export", view.query, { ...exported, format: "csv" })} download>
              CSV
            </A>
          </span>
        )}
      </p>
    </>
  );
}

interface FilterFormProps {
  readonly filter: LogFilter;
  readonly shown: Shown | undefined;
  readonly chosen: readonly Chosen[];
}

/** A type that the address names, and whether only such events are shown or none. */
type Chosen = readonly [name: "type" | "not", type: string];

function readChosen(query: URLSearchParams): readonly Chosen[] {
  return (["type", "not"] as const).flatMap((name) =>
    [...new Set(query.getAll(name))].flatMap((type) => (type === "" ? [] : [[name, type] as const])),
  );
}

/** The filter form. Its result is never the news, because a filter shows everything that it selects. */
function FilterForm({ filter, shown, chosen }: FilterFormProps): VNode {
  const isNarrowed = TEXT_FIELDS.some(({ name }) => filter[name] !== undefined);
  return (
    <details open={isNarrowed}>
      <summary>Filter</summary>
      <PageForm class="filter" action="/activity" data-apply="chips">
        {shown === undefined || shown === "news" ? null : <input type="hidden" name="show" value={shown} />}
        {chosen.map(([name, type]) => (
          <input type="hidden" name={name} value={type} />
        ))}
        <Select name="type" label="Type" values={EVENT_TYPES} inWords={spaced} />
        <Select name="not" label="Not of type" values={EVENT_TYPES} inWords={spaced} none="none" />
        {TEXT_FIELDS.map(({ name, label, placeholder }) => (
          <Field label={label} name={name} value={filter[name] ?? ""} maxLength={400} placeholder={placeholder} />
        ))}
        <button>Show</button>
      </PageForm>
    </details>
  );
}

/** The types that the address names, each with a link that inverts it and a link that removes it. */
function TypeChips({ query, chosen }: { query: URLSearchParams; chosen: readonly Chosen[] }): VNode | null {
  if (chosen.length === 0) return null;
  return (
    <ul class="chips" aria-label="Types">
      {chosen.map(([name, type]) => {
        const opposite = name === "type" ? "not" : "type";
        const others = query.getAll(name).filter((one) => one !== type);
        return (
          <li>
            Type{" "}
            <A
              href={activityHref(query, { [name]: others, [opposite]: [...query.getAll(opposite), type] })}
              aria-label={`${name === "type" ? "is, change to is not" : "is not, change to is"}: ${spaced(type)}`}
            >
              {name === "type" ? "is" : "is not"}
            </A>{" "}
            <b>{spaced(type)}</b>{" "}
            <A href={activityHref(query, { [name]: others })} aria-label={`Remove ${spaced(type)}`}>
              <Icon name="x" />
            </A>
          </li>
        );
      })}
    </ul>
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

type Changes = Parameters<typeof addressWith>[2];

/** The address of the page with the same filter and these changes, from the newest event on. */
function activityHref(query: URLSearchParams, changes: Changes): string {
  return addressWith("/activity", query, { before: undefined, ...changes });
}

/**
 * One event with all of its data, the outcomes of its dispatches, and the hash of the previous event (for position 1: 64
 * zeros).
 */
export const eventPage = consolePage({
  async reads(visit) {
    const { data = {} } = (await readShown(visit)) ?? {};
    return "recipient" in data ? ["account", "contacts", "runs"] : ["account", "runs"];
  },
  render: renderEvent,
});

/** The event whose position is in the page's path. */
async function readShown({ parameters, store }: PageVisit): Promise<Recorded | undefined> {
  const position = Number(/^\d{1,15}$/.exec(parameters["position"] ?? "")?.[0] ?? 0);
  const [event] = position < 1 ? [] : await Array.fromAsync(store.read({ from: position, to: position, limit: 1 }));
  return event;
}

async function renderEvent(view: View<"account" | "contacts" | "runs">): Promise<DisclosingPage | undefined> {
  const event = await readShown(view);
  if (event === undefined || event.position > view.position) return undefined;
  const previousHash = (await view.store.hashAt(event.position - 1)) ?? "";
  const { position, type, stream, version, time, id, hash, meta, data } = hideCodes(event);
  const facts: readonly NamedValue[] = [
    ["time", <Time at={time} />],
    ["stream", <bdi>{`${stream}, version ${version}`}</bdi>],
    ["id", <code>{id}</code>],
    ["caller", <bdi>{meta.caller === undefined ? "not recorded" : formatCaller(meta.caller)}</bdi>],
    ["request id", <code>{meta.request_id ?? "none"}</code>],
    ["trace", <Trace traceparent={meta.traceparent} url={view.settings.traceUrl} />],
    ["hash", <code>{hash}</code>],
    ["previous hash", <code>{previousHash}</code>],
  ];
  const page = (
    <ConsoleDocument title={`Event ${position}`} path="/activity" view={view}>
      <h1>
        {spaced(type)} <small>at position {grouped(position)}</small>
      </h1>
      <EventSentence view={view} event={event} isWhole />
      <NamedValues of={facts} />
      <Cited view={view} id="causes" title="What caused it" events={await findCauses(view, event)} />
      <Cited view={view} id="effects" title="What it caused" events={await findEffects(view, event)} />
      {await renderOutcomes(view, event)}
      {await renderStateChanges(view, event)}
      <p>
        <A href={`/api/audit/proof/${position}`} download>
          Prove it
        </A>
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
        {position > 1 ? <A href={eventHref(position - 1)}>Previous</A> : null}{" "}
        {position < view.position ? <A href={eventHref(position + 1)}>Next</A> : null}{" "}
        <A href={`/activity?${new URLSearchParams({ stream })}`}>Events of this stream</A>
      </p>
    </ConsoleDocument>
  );
  return { page, disclosed: discloseEvent(event) };
}

/**
 * The trace of a `traceparent` (W3C: version, id, span, flags), with a link to the collected traces if they have an
 * address.
 */
function Trace({ traceparent, url }: { readonly traceparent: string | undefined; url: string | undefined }): VNode {
  const [, id] = /^[\da-f]{2}-([\da-f]{32})-/.exec(traceparent ?? "") ?? [];
  const shown = <code>{traceparent ?? "none"}</code>;
  return id === undefined || url === undefined ? shown : <A href={url.replace("{id}", id)}>{shown}</A>;
}

interface CitedProps {
  readonly view: View<"runs">;
  readonly id: string;
  readonly title: string;
  readonly events: readonly Recorded[];
}

/** Events under a title. Renders nothing if there are none. */
function Cited({ view, id, title, events }: CitedProps): VNode | null {
  if (events.length === 0) return null;
  return (
    <Section id={id} title={title}>
      <EventList view={view} events={events} />
    </Section>
  );
}

/** The outcomes of an event's dispatches, channel by channel; renders nothing for an event that requested none. */
async function renderOutcomes(view: View<"runs">, event: Recorded): Promise<VNode | null> {
  const outcomes = await readOutcomes(toReading(view), event);
  if (outcomes.length === 0) return null;
  return (
    <Section id="outcomes" title="Outcomes">
      {outcomes.map(({ channel, events, isWhole }) => (
        <>
          <h3>{channel}</h3>
          {events.length > 0 ? <EventList view={view} events={events} /> : null}
          {isWhole && events.length === 0 ? <p class="empty">No attempt is recorded yet.</p> : null}
          {isWhole ? null : (
            <p>
              This channel was far behind: <code>reachlog deliveries show {event.id}</code> looks further.
            </p>
          )}
        </>
      ))}
    </Section>
  );
}
