/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { LetterStatus } from "../../../projections/dead-letters.ts";
import { listChannels } from "../../../projections/deliveries.ts";
import { LINK_CHARACTERS_MAX } from "../../../projections/sent-links.ts";
import { findLetters, listAllLetters } from "../../delivery/dead-letters.ts";
import {
  FILTER_NAMES,
  parseDispatchFilter,
  selectedChannels,
  STATUSES,
  type DispatchFilter,
  type FilterTexts,
} from "../../delivery/dead-letter-filter.ts";
import { readDeliveryLag } from "../../delivery/delivery.operations.ts";
import { drainInWords, type ChannelLag } from "../../delivery/lag.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { formatCursor, parseCursor, readDispatchPage, type ListedDispatch } from "../../delivery/list-dispatches.ts";
import { formatDuration } from "../../platform/format-duration.ts";
import { addressWith, eventHref } from "../hrefs.ts";
import { ChannelStatus } from "../parts/channel-status.tsx";
import { DecideAllLetters, DecideLetter, DecideInDoubt } from "../parts/dead-letter-actions.tsx";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { EventSentence } from "../parts/events.tsx";
import { ActionForm, Field, Select } from "../parts/action-form.tsx";
import { Time } from "../parts/time.tsx";
import { consolePage, askOperation, readOrReason, readText, type View } from "../page-context.ts";
import { numbers, Table } from "../parts/table.tsx";
import { A, PageForm } from "../parts/link.tsx";

/** The progress of each channel, and the dispatches that were given up or are in doubt. */
export const deliveriesPage = consolePage({
  reads: ["account", "deliveries", "runs"],
  render: renderDeliveries,
});

async function renderDeliveries(view: View<"account" | "deliveries" | "runs">): Promise<VNode> {
  const texts: FilterTexts = Object.fromEntries(
    FILTER_NAMES.flatMap((name) => {
      const text = readText(view, name);
      return text === undefined ? [] : [[name, text]];
    }),
  );
  const filter = await readOrReason(() => parseDispatchFilter(texts, view.settings.timezone));
  const wanted = typeof filter === "string" ? undefined : filter.channel;
  const lags = await readOrReason(() => askOperation(view, readDeliveryLag, omitUndefined({ channel: wanted })));
  const fault = [filter, lags].find((one) => typeof one === "string");
  const { channels } = typeof lags === "string" ? await askOperation(view, readDeliveryLag, {}) : lags;
  const statuses = STATUSES.filter((status) => texts.status === undefined || texts.status === status);
  let all: ReturnType<typeof listAllLetters> | undefined;
  const listAll = () => (all ??= listAllLetters(view.store, view.position));
  return (
    <ConsoleDocument title="Deliveries" path="/deliveries" view={view}>
      <h1>Deliveries</h1>
      <details class="folded">
        <summary>Filter{Object.keys(texts).length === 0 ? "" : ` (${Object.keys(texts).length} chosen)`}</summary>
        <FilterForm view={view} texts={texts} />
      </details>
      {fault === undefined ? null : (
        <p class="notice fault" role="alert">
          {fault.replace(/\.$/, "")}.
        </p>
      )}
      <LagTable view={view} lags={channels} />
      {typeof filter === "string"
        ? null
        : await Promise.all(statuses.map((status) => renderDispatches(view, { ...filter, status }, texts, listAll)))}
    </ConsoleDocument>
  );
}

function FilterForm({ view, texts }: { readonly view: View<"deliveries">; readonly texts: FilterTexts }): VNode {
  const field = (name: "error" | "link" | "from" | "to", label: string, placeholder: string) => (
    <Field
      label={label}
      name={name}
      value={texts[name] ?? ""}
      placeholder={placeholder}
      maxLength={LINK_CHARACTERS_MAX}
    />
  );
  return (
    <PageForm class="filter" action="/deliveries">
      <Select name="channel" label="Channel" values={listChannels(view.state("deliveries"))} chosen={texts.channel} />
      <Select name="status" label="Status" values={STATUSES} chosen={texts.status} />
      {field("error", "Error", "refused, 5xx, 429")}
      {field("link", "Link", "domain/code or domain")}
      {field("from", "From", "day or time")}
      {field("to", "To", "day or time")}
      <button>Show</button>
    </PageForm>
  );
}

/**
 * The lists of the page. `cursor` is the parameter of the address that names the dispatch after which the list
 * continues.
 */
const LISTS = {
  dead: {
    id: "letters",
    title: "Dead letters",
    cursor: "letters_after",
    none: "No dead letters, or all were retried or discarded.",
  },
  in_doubt: {
    id: "in-doubt",
    title: "In doubt",
    cursor: "in_doubt_after",
    none: "Nothing is in doubt.",
  },
} as const satisfies Record<LetterStatus, object>;

function LagTable({ view, lags }: { readonly view: View<"deliveries">; readonly lags: readonly ChannelLag[] }): VNode {
  return (
    <Table
      label="Channels"
      columns={[
        "channel",
        "state",
        ...numbers("pending", "oldest click", "settled a minute", "requested a minute", "drained in"),
      ]}
      rows={lags.map((lag) => [
        lag.channel,
        <>
          <ChannelStatus view={view} name={lag.channel} failuresInARow={lag.failures_in_a_row} />{" "}
          {lag.suspended === null ? null : (
            <ActionForm
              view={view}
              back={deliveriesHref(view)}
              action="/console/deliveries/resume"
              fields={{ channel: lag.channel }}
            >
              <button>Resume {lag.channel}</button>
            </ActionForm>
          )}
        </>,
        lag.backlog,
        lag.oldest_click_seconds === null ? null : formatDuration(lag.oldest_click_seconds),
        lag.settled_per_minute,
        lag.requested_per_minute,
        drainInWords(lag),
      ])}
    />
  );
}

/** The matching dispatches of one status. `texts` is the filter as the operator wrote it. */
async function renderDispatches(
  view: View<"deliveries" | "runs">,
  filter: DispatchFilter,
  texts: FilterTexts,
  listAll: () => ReturnType<typeof listAllLetters>,
): Promise<VNode> {
  const { id, title, cursor, none } = LISTS[filter.status];
  // The state may be newer than the page by now. The page's forms decide only about events up to its position.
  const found = await findLetters(view.store, { ...view, deliveries: view.state("deliveries") }, filter, listAll);
  const letters = found.filter(({ position }) => position <= view.position);
  const page = await readDispatchPage(view.store, letters, parseCursor(view.query.get(cursor) ?? ""));
  const isDead = filter.status === "dead";
  const Decide = isDead ? DecideLetter : DecideInDoubt;
  const back = deliveriesHref(view);
  return (
    <Section id={id} title={title}>
      {letters.length === 0 ? (
        <p class="empty">{Object.keys(texts).length === 0 ? none : "None match."}</p>
      ) : (
        <>
          {isDead ? (
            <>
              <p>{countInWords(letters.length, "dispatch was", "dispatches were")} given up.</p>
              {selectedChannels(filter, view.state("deliveries")).map((channel) => (
                <DecideAllLetters {...{ view, back, channel, texts, letters }} />
              ))}
            </>
          ) : (
            <p class="quiet">
              {grouped(letters.length)} may or may not have arrived. None is sent again by itself, since that could
              double it.
            </p>
          )}
          <ol class="events">
            {page.dispatches.map((one) => (
              <Dispatch view={view} one={one}>
                <Decide view={view} back={back} letter={one} />
              </Dispatch>
            ))}
          </ol>
        </>
      )}
      <p>
        {view.query.has(cursor) ? (
          <A href={addressWith("/deliveries", view.query, { [cursor]: undefined })}>Newest</A>
        ) : null}{" "}
        {page.next === undefined ? null : (
          <A href={addressWith("/deliveries", view.query, { [cursor]: formatCursor(page.next) })}>Older</A>
        )}
      </p>
    </Section>
  );
}

/** A dispatch: the event to deliver, and why it was not delivered. */
function Dispatch({ view, one, children }: { view: View<"runs">; one: ListedDispatch; children: VNode }): VNode {
  const { channel, source, outcome } = one;
  const [request] = outcome.data.requests;
  if (request === undefined) throw new Error(`the outcome at ${outcome.position} has no request`);
  const doubtful = "doubtful_since" in request ? request.doubtful_since : undefined;
  return (
    <li id={`${channel}-${source.position}`} class="letter">
      <A href={eventHref(source.position)}>{grouped(source.position)}</A> <EventSentence view={view} event={source} />
      <p class="quiet">
        <b>{channel}</b>, {describeEnd(request)}, <Time at={outcome.time} /> (
        <A href={eventHref(outcome.position)}>event {grouped(outcome.position)}</A>
        {request.status === undefined ? null : `, status ${request.status}`}): <bdi>{request.detail}</bdi>
        {doubtful === undefined ? null : (
          <>
            {"; "}an attempt of <Time at={doubtful} /> may have arrived
          </>
        )}
      </p>
      {children}
    </li>
  );
}

function describeEnd(request: ListedDispatch["outcome"]["data"]["requests"][number]): string {
  const { attempt } = request;
  if (!("refused" in request)) return `in doubt at attempt ${attempt}`;
  return request.refused
    ? `refused for good at attempt ${attempt}`
    : `out of attempts after ${attempt === 1 ? "the first" : attempt}`;
}

/** The address of this page. */
function deliveriesHref({ query }: View): string {
  return addressWith("/deliveries", query, {});
}
