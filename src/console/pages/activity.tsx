/** @jsxImportSource preact */
import type { VNode } from "preact";
import { spaced, toCapital } from "../../history/event-sentences.ts";
import { EVENT_TYPES, type EventType, type Recorded } from "../../../events/event-types-and-codec.ts";
import { NEWS_TYPES, readLogPage, readNews } from "../../history/log-and-news-pages.ts";
import { addressWith } from "../hrefs.ts";
import { ConsoleDocument, FaultNotice, Head } from "../document.tsx";
import { Field, Select } from "../parts/action-form.tsx";
import { EventList, isProblem } from "../parts/event-sentence.tsx";
import { NewsDays } from "../parts/news.tsx";
import { Icon } from "../parts/icon-and-badge.tsx";
import { formatTime, readTimes } from "../parts/time.tsx";
import { consolePage, type DisclosingPage, readChoice, readNumber, readText, type View } from "../page-context.ts";
import { CheckLog, Proof } from "../parts/verification-result.tsx";
import { A, HiddenFields, PageForm, Tabs } from "../parts/links-forms-and-tabs.tsx";

/**
 * Event types that each view of the page Activity shows. Undefined for `everything`, which shows all types, and for
 * `news`, which chooses its events itself.
 */
const VIEWS = {
  news: undefined,
  everything: undefined,
  messages: EVENT_TYPES.filter((type) => /^(Campaign|DirectMessage|Run|DryRun|Recipient|Consent)/.test(type)),
  clicks: ["LinkClicked", "PersonalLinkClicked", "ConversionRecorded", "ConversionReversed", "LinkAdded"],
  deliveries: EVENT_TYPES.filter((type) => /^(Dispatch|Circuit|Channel|Notification|MessageRequested)/.test(type)),
  problems: EVENT_TYPES.filter((type) => isProblem(type)),
} as const satisfies Record<string, readonly EventType[] | undefined>;

type Shown = keyof typeof VIEWS;

const SHOWN = Object.keys(VIEWS) as readonly Shown[];

/**
 * Page Activity: the log in sentences, newest first. Shows all of it, or the events selected by type, stream,
 * recipient, link, run and time.
 */
export const activityPage = consolePage({
  reads: ({ query }) => [
    ...(["account", "runs", "news", "suspected", "timeline"] as const),
    ...(query.has("recipient") ? (["contacts"] as const) : []),
  ],
  render: renderActivity,
});

async function renderActivity(
  view: View<"account" | "contacts" | "news" | "runs" | "suspected" | "timeline">,
): Promise<DisclosingPage> {
  const { shown, filter, excluded, isNews } = readFilter(view);
  const { timezone } = view.settings;
  const day = readText(view, "day");
  const since = readNumber(view, "from");
  const shownNews = isNews ? await readNews(view, { timezone, day, since }) : undefined;
  const query = { filter, excluded, before: readNumber(view, "before"), timezone };
  const found = shownNews === undefined ? await readLogPage(view, query) : undefined;
  const chosen = readChosen(view.query);
  const page = (
    <ConsoleDocument title="Activity" path="/activity" view={view}>
      <Head title="Activity" says="All that happened, in order. Nothing is ever changed.">
        <CheckLog view={view} />
      </Head>
      <Proof view={view} />
      <Tabs
        label="What is shown"
        tabs={SHOWN.map((one) => [
          activityHref(view.query, { show: one, type: undefined }),
          toCapital(one),
          one === shown,
        ])}
      />
      <FilterForm filter={filter} shown={shown} chosen={chosen} />
      <TypeChips query={view.query} chosen={chosen} />
      {shownNews === undefined ? null : <FoundNews view={view} news={shownNews} />}
      {found?.fault === undefined ? (
        found && <Found view={view} found={found} />
      ) : (
        <FaultNotice>{found.fault}.</FaultNotice>
      )}
    </ConsoleDocument>
  );
  return { page, disclosed: found?.recipient === undefined ? {} : { recipient: found.recipient } };
}

type LogPage = Awaited<ReturnType<typeof readLogPage>>;
type Filter = Parameters<typeof readLogPage>[1]["filter"];

/**
 * Reads from the page's address which events are shown. `type` overrides `show`, and `not` excludes types. Without a
 * filter the page shows the list of news, which leaves out routine events; with one, all events that match.
 */
function readFilter(view: View) {
  const [types = [], excluded = []] = ["type", "not"].map((name) =>
    view.query.getAll(name).filter((type) => type !== ""),
  );
  const texts: Partial<Record<TextName, string>> = {};
  for (const { name } of TEXT_FIELDS) {
    const text = readText(view, name);
    if (text !== undefined) texts[name] = text;
  }
  const isNarrowed = Object.keys(texts).length > 0 || excluded.length > 0;
  const shown =
    types.length > 0 ? undefined : (readChoice(view, "show", SHOWN) ?? (isNarrowed ? "everything" : "news"));
  const shownTypes = types.length > 0 ? types : shown && VIEWS[shown];
  // News are lines that each sum up several events. Every other view, and news with a filter, lists single events.
  const isNews = shown === "news" && excluded.length === 0 && Object.keys(texts).every((name) => name === "from");
  const listed = shownTypes ?? (shown === "news" ? NEWS_TYPES : undefined);
  const filter: Filter = listed === undefined ? texts : { ...texts, types: listed };
  return { shown, filter, excluded, isNews: isNews && /^\d*$/.test(texts.from ?? "") };
}

interface FoundProps {
  readonly view: View<"runs">;
  readonly found: Extract<LogPage, { readonly fault: undefined }>;
}

function Found({ view, found: { events, next, types, last } }: FoundProps): VNode {
  const { query } = view;
  return (
    <>
      {events.length === 0 && next !== undefined ? (
        <p class="empty">None among those looked at.</p>
      ) : (
        <Days view={view} events={events} />
      )}
      <p class="pages">
        {query.has("before") ? <A href={activityHref(query, {})}>Newest events</A> : null}{" "}
        {next === undefined ? null : <A href={activityHref(query, { before: String(next) })}>Older events</A>}
        {types?.length === 0 ? null : <Exports query={query} types={types} last={last} />}
      </p>
    </>
  );
}

interface ExportsProps {
  readonly query: URLSearchParams;
  /** Event types that are exported. Undefined for all. */
  readonly types: readonly string[] | undefined;
  /** Position of the last event that is exported. */
  readonly last: number;
}

function Exports({ query, types, last }: ExportsProps): VNode {
  const exported = { show: undefined, not: undefined, before: undefined, day: undefined, type: types };
  const addressIn = (format: string | undefined) =>
    addressWith("/api/audit/export", query, { ...exported, to: String(last), format });
  return (
    <span>
      Export all matches:{" "}
      <A href={addressIn(undefined)} download>
        JSON Lines
      </A>
      ,{" "}
      <A href={addressIn("csv")} download>
        CSV
      </A>
    </span>
  );
}

/** Lists single events under the day on which they were recorded. */
function Days({ view, events }: { readonly view: View<"runs">; readonly events: readonly Recorded[] }): VNode {
  if (events.length === 0) return <p class="empty">No events.</p>;
  const times = readTimes(view);
  const days = Map.groupBy(events, ({ time }) => formatTime(time, "day", times));
  return (
    <>
      {[...days].map(([name, ofDay]) => (
        <section class="card day">
          <header>
            <h2>{name}</h2>
          </header>
          <EventList view={view} events={ofDay} isOfDay />
        </section>
      ))}
    </>
  );
}

function FoundNews({ view, news }: { view: View<"runs">; news: Awaited<ReturnType<typeof readNews>> }): VNode {
  const { query } = view;
  return (
    <>
      <NewsDays view={view} news={news} />
      <p class="pages">
        {query.has("day") || query.has("from") ? <A href="/activity">Newest days</A> : null}{" "}
        {news.older === undefined ? null : <A href={activityHref(query, { day: news.older })}>Older days</A>}{" "}
        <Exports query={query} types={NEWS_TYPES} last={view.position} />
      </p>
    </>
  );
}

interface FilterFormProps {
  readonly filter: Filter;
  readonly shown: Shown | undefined;
  readonly chosen: readonly Chosen[];
}

/** An event type in the page's address: only events of this type are shown (`type`), or all others (`not`). */
type Chosen = readonly [name: "type" | "not", type: string];

function readChosen(query: URLSearchParams): readonly Chosen[] {
  return (["type", "not"] as const).flatMap((name) =>
    [...new Set(query.getAll(name))].flatMap((type) => (type === "" ? [] : [[name, type] as const])),
  );
}

/**
 * Form that filters events. A filtered page never shows news (lines that sum up several events), but all single events
 * that match.
 */
function FilterForm({ filter, shown, chosen }: FilterFormProps): VNode {
  const isNarrowed = TEXT_FIELDS.some(({ name }) => filter[name] !== undefined);
  return (
    <details open={isNarrowed}>
      <summary>Filter</summary>
      <PageForm class="filter" action="/activity" data-apply="chips">
        <HiddenFields of={[["show", shown === "news" ? undefined : shown], ...chosen]} />
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

/** Shows the event types in the page's address, each with a link that inverts the choice and a link that removes it. */
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

type TextName = (typeof TEXT_FIELDS)[number]["name"];

type Changes = Parameters<typeof addressWith>[2];

/** Returns the address of the page Activity with the same filter and these changes, beginning at the newest event. */
function activityHref(query: URLSearchParams, changes: Changes): string {
  return addressWith("/activity", query, { before: undefined, day: undefined, ...changes });
}
