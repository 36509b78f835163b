/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import {
  compareCounts,
  describeFirstClick,
  FIRST_CLICK,
  groupRows,
  listFigures,
  RATES,
  readResults,
  type ResultsPage,
} from "../../history/sum-replies-clicks-and-conversions.ts";
import { shorten } from "../../history/event-sentences.ts";
import { findMessages, type FoundMessage } from "../../outreach/campaigns/read-campaigns.ts";
import {
  countInWords,
  formatDuration,
  formatPercent,
  formatUsd,
  grouped,
} from "../../platform/format-numbers-and-lists.ts";
import { sortRows } from "../../platform/sorted-page.ts";
import { addressWith, campaignHref, eventHref, hrefForLink } from "../hrefs.ts";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { Field, Select } from "../parts/action-form.tsx";
import { chooseScale, RateChart } from "../parts/charts.tsx";
import { OptionalLink, RunLink } from "../parts/event-sentence.tsx";
import { Icon } from "../parts/icon-and-badge.tsx";
import { createSortedHeads, Table } from "../parts/table.tsx";
import { readSort } from "../read-sort-from-address.ts";
import { consolePage, readNumber, readText, type View } from "../page-context.ts";
import { A, PageForm } from "../parts/links-forms-and-tabs.tsx";

type Row = ResultsPage["rows"][number];
type ResultsView = View<"account" | "campaigns" | "conversions" | "results" | "runs" | "visits">;

/** Page Results: the outcomes of messages, which variant of each template is better, and how certain that is. */
export const resultsPage = consolePage({
  reads: ["account", "campaigns", "conversions", "results", "runs", "visits"],
  render: renderResults,
});

async function renderResults(view: ResultsView): Promise<VNode> {
  const [by, from, to] = (["by", "from", "to"] as const).map((name) => readText(view, name));
  const days = LAST_DAYS.find((count) => count === readNumber(view, "days"));
  const results = await readResults(view, { by, days, from, to });
  const compared = results.verdicts.map(({ template }) => template);
  const messages = await findMessages(view, view.settings.campaigns, compared);
  return (
    <ConsoleDocument title="Results" path="/results" view={view}>
      <Head title="Results" says={results.days} />
      <Filter results={results} days={days} />
      {results.mergedDays === "" ? null : <p>{results.mergedDays}</p>}
      {results.rows.length === 0 ? (
        <p class="empty">
          No message was attempted in these days. A message with a line <code>---</code> between its variants compares
          them.
        </p>
      ) : (
        <>
          <Funnel results={results} />
          <Total results={results} />
          <Comparisons view={view} results={results} messages={messages} />
          <AllRows view={view} results={results} />
          <Text view={view} results={results} />
        </>
      )}
    </ConsoleDocument>
  );
}

/** The page offers the results of this many last days. */
const LAST_DAYS = [30, 7] as const;

type ResultsProps = { readonly results: ResultsPage };

function Filter({ results, days }: ResultsProps & { readonly days: number | undefined }): VNode {
  const { by, groupings, from = "", to = "" } = results;
  const last = LAST_DAYS.map(String);
  const isChosen = days === undefined && from + to !== "";
  return (
    <PageForm class="filter" action="/results" data-apply>
      <Select name="by" label="By" values={groupings} chosen={by} none={null} />
      <Select
        name="days"
        label="Days"
        values={last}
        chosen={days?.toString()}
        inWords={(count) => `last ${count} days`}
        none={isChosen ? "as chosen" : "all days"}
      />
      <details open={isChosen}>
        <summary>Choose days</summary>
        <div class="filter">
          <Field label="From" type="date" name="from" value={isChosen ? from : ""} />
          <Field label="To" type="date" name="to" value={isChosen ? to : ""} />
        </div>
      </details>
      <button>Show</button>
      <A href="/what-if">What other rules would have done</A>
    </PageForm>
  );
}

/**
 * Shows how many messages led to visitors and conversions. A band is drawn under the figures; its height at each figure
 * shows the ratio of that figure to the number of sent messages, up to full height.
 */
function Funnel({ results: { total, other } }: ResultsProps): VNode {
  const { sent, failed, in_doubt, clicks, conversions, conversion_rate: rate, previous } = total;
  const visitors = clicks?.unique ?? 0;
  const hasConversions = conversions.total + conversions.reversed > 0;
  const halves = [sent, visitors, ...(hasConversions ? [conversions.total] : [])].map(
    (count) => 50 * Math.min(1, count / Math.max(1, sent)),
  );
  return (
    <section class="card funnel" aria-label="From messages to conversions">
      <dl class="figures">
        <Figure title="Sent" {...compareCounts(sent, previous?.sent)}>
          {grouped(failed)} failed, {grouped(in_doubt)} in doubt
        </Figure>
        <Figure title="Visitors" {...compareCounts(visitors, previous?.clicks?.unique)}>
          {sent === 0 ? "" : `${formatPercent(visitors / sent)} of messages; `}an estimate, each counts once for each
          link and day
        </Figure>
        {!hasConversions ? null : (
          <Figure title="Conversions" {...compareCounts(conversions.total, previous?.conversions.total)}>
            {grouped(conversions.reversed)} reversed, {grouped(other.conversions.total)} in no row
            {rate === null ? "" : `; ${formatPercent(rate.rate)} of recipients who granted tracking`}
          </Figure>
        )}
      </dl>
      <svg viewBox={`0 0 ${halves.length * 3} 100`} preserveAspectRatio="none" aria-hidden="true">
        {halves.map((half, at) => {
          const next = halves[at + 1] ?? half;
          const [x, middle, end] = [at * 3 + 1, at * 3 + 2, at * 3 + 3];
          const upper = `M${x} ${50 - half}C${middle} ${50 - half} ${middle} ${50 - next} ${end} ${50 - next}`;
          const lower = `V${50 + next}C${middle} ${50 + next} ${middle} ${50 + half} ${x} ${50 + half}Z`;
          return (
            <>
              <path d={upper + lower} />
              <rect x={x - 1} y={50 - half} width="1" height={2 * half} />
            </>
          );
        })}
      </svg>
    </section>
  );
}

/** Shows the totals of all result rows: receipts, replies, clicks, conversions, and cost. */
function Total({ results: { total, worth, cost_usd: cost } }: ResultsProps): VNode {
  const { sent, seen, seen_rate, replied, reply_rate, clicks, tracked, conversions, previous } = total;
  const { cost_per_conversion_usd: each } = total;
  const { total: all = 0, suspected = 0, bots = 0 } = clicks ?? {};
  return (
    <dl class="card figures" aria-label="All rows">
      {seen === 0 || seen_rate === null ? null : (
        <Figure title="Seen" {...compareCounts(seen, previous?.seen)}>
          at least {formatPercent(seen_rate.rate)} of those sent; no receipt means unknown
        </Figure>
      )}
      <Figure title="Replied" {...compareCounts(replied, previous?.replied)}>
        {reply_rate === null ? "nothing sent" : `${formatPercent(reply_rate.rate)} of those sent`}
      </Figure>
      <Figure title="Clicks by people" {...compareCounts(all, previous?.clicks?.total)}>
        {grouped(suspected)} more may be X itself, {grouped(bots)} are by bots; <A href="/links">Links</A> has the
        clicks on all links
      </Figure>
      <Figure title="Recipients who clicked" {...compareCounts(tracked.clicked, previous?.tracked.clicked)}>
        of {grouped(tracked.recipients)} who granted tracking; {describeFirstClick(tracked)}
      </Figure>
      {conversions.total + conversions.reversed === 0 ? null : (
        <Figure title="Value" value={worth.value ?? "–"}>
          {worth.perMessage === null ? "no message sent" : `${worth.perMessage} per message`}
          {each === null ? "" : `; ${each} USD cost per conversion`}
        </Figure>
      )}
      <Figure title="Cost" value={cost === null ? "–" : formatUsd(cost)}>
        {cost === null ? "none is recorded" : "at most"}
        {cost === null || sent === 0 ? "" : `; ${formatUsd(cost / sent, 3)} per message`}
      </Figure>
    </dl>
  );
}

interface FigureProps {
  readonly title: string;
  /** Page that the title of the number links to. */
  readonly href?: string;
  readonly value: string;
  readonly change?: string | undefined;
  /** An explanation of the number. */
  readonly children?: ComponentChildren;
}

/** Renders a number as an entry of a definition list (`dl`): its title, its value and change, and an explanation. */
export function Figure({ title, href, value, change, children }: FigureProps): VNode {
  return (
    <div>
      <dt>
        <OptionalLink href={href}>{title}</OptionalLink>
      </dt>
      <dd class="figure">
        {value}
        {change && <> {<small>{change}</small>}</>}
      </dd>
      {children === undefined ? null : <dd class="quiet">{children}</dd>}
    </div>
  );
}

/** Maximum number of rows in a card's charts. The table of results has all rows. */
const CHART_ROWS_MAX = 26;
const CARDS_MAX = 8;

interface ComparisonsProps extends ResultsProps {
  readonly view: ResultsView;
  /** The messages whose text is known, by their ids. */
  readonly messages: ReadonlyMap<string | null, FoundMessage>;
}

/**
 * Shows one card with rates and verdict for each template or, if the rows are not variants, one card for all rows.
 * Results by campaign also show the verdict on each template's variants.
 */
function Comparisons({ view, results, messages }: ComparisonsProps): VNode {
  const { by, members, verdicts } = results;
  const drawn = groupRows(results)
    .slice(-CARDS_MAX)
    .map((group) => group.slice(-CHART_ROWS_MAX));
  const scales = RATES.map(({ read }) => chooseScale(drawn.flat().map((row) => read(row).rate)));
  return (
    <div class="charts">
      {drawn.map((group, card) => {
        const [first] = group;
        const verdict = by === "variant" ? verdicts.find(({ template }) => template === first?.template) : undefined;
        const charts = RATES.map(({ title, base, measure, read }, at) => (
          <RateChart
            title={title}
            base={base}
            top={scales[at]!}
            rates={group.map((row) => ({
              ...read(row),
              label: by === "variant" ? <b>{row.variant}</b> : renderNames(view, members, row),
              isWinner: verdict?.winner[measure] === row.variant && verdict !== undefined,
            }))}
          />
        ));
        return (
          <section class="card" aria-labelledby={`card-${card}`}>
            {verdict === undefined ? (
              <h2 id={`card-${card}`}>{by === "variant" ? <bdi>{first?.names[0]}</bdi> : `Rates by ${by}`}</h2>
            ) : (
              <Verdict verdict={verdict} id={`card-${card}`} message={messages.get(verdict.template)} />
            )}
            {charts}
          </section>
        );
      })}
      {by !== "campaign"
        ? null
        : verdicts.map((verdict, at) => (
            <section class="card" aria-labelledby={`verdict-${at}`}>
              <Verdict verdict={verdict} id={`verdict-${at}`} message={messages.get(verdict.template)} />
            </section>
          ))}
    </div>
  );
}

const OUTCOME_ICONS = { better: "check", split: "check", early: "clock", same: "equal", few: "clock" } as const;

interface VerdictProps {
  readonly verdict: ResultsPage["verdicts"][number];
  readonly id: string;
  /**
   * The message whose variants the verdict compares. Undefined if neither the settings nor the log contain the
   * message's text.
   */
  readonly message: FoundMessage | undefined;
}

/**
 * Says if one variant of a template is better, how certain that is, and how many more messages would decide. Shows how
 * each variant's text begins.
 */
function Verdict({ verdict, id, message }: VerdictProps): VNode {
  const { name, sent, outcome, title, explanation } = verdict;
  return (
    <div class="verdict">
      <span class={outcome === "better" ? "glyph good" : "glyph"}>
        <Icon name={OUTCOME_ICONS[outcome]} />
      </span>
      <p class="quiet">
        <bdi>{name}</bdi>, {countInWords(sent, "message")}
      </p>
      <h2 id={id}>{title}</h2>
      <p>{explanation}</p>
      {message !== undefined ? (
        <Beginnings of={message} />
      ) : (
        <p class="quiet">
          The settings no longer hold this message. Its text is on the page of each person who got it.
        </p>
      )}
    </div>
  );
}

/** Number of characters of a variant's text that a verdict shows. */
const BEGINNING_CHARACTERS = 80;

function Beginnings({ of: message }: { readonly of: FoundMessage }): VNode {
  const href = "position" in message ? eventHref(message.position) : `${campaignHref(message.campaign)}#text`;
  return (
    <ul>
      {message.template.variants.map(({ label, text }) => (
        <li>
          <b>{label}</b>{" "}
          <A href={href}>
            <bdi>{shorten(text.replaceAll(/\s+/g, " "), BEGINNING_CHARACTERS)}</bdi>
          </A>
        </li>
      ))}
    </ul>
  );
}

function renderNames(view: View<"runs">, members: ResultsPage["members"], { names }: Row): readonly VNode[] {
  return names.map((name, at) => {
    if (members[at] === "run_id") return <RunLink view={view} runId={name} />;
    return <bdi>{members[at] === "link" ? <A href={hrefForLink(name)}>{name}</A> : name}</bdi>;
  });
}

function AllRows({ view, results }: ResultsProps & { readonly view: View<"runs"> }): VNode {
  const { by, from, to, members, rows, note, omitted } = results;
  const figures = listFigures(results);
  const csv = addressWith("/social/results", new URLSearchParams({ by }), { from, to, format: "csv" });
  // Until the reader sorts by a column, the rows keep the order of the results, with the newest row last.
  const sort = readSort<string>(view, [...members, ...Object.keys(figures)], { by: "", order: "ascending" });
  const member = members.findIndex((name) => name === sort.by);
  const sortValue = (row: Row) =>
    member === -1 ? figures[sort.by]?.(row) : row[members[member]!] && row.names[member];
  const toColumn = createSortedHeads(view, "/results", sort);
  return (
    <Section id="rows" title={`By ${by}`}>
      <Table
        label={`Results by ${by}`}
        columns={[
          ...members.map((head, at) => toColumn(head, head, "ascending", at === 0 ? undefined : "state")),
          ...Object.keys(figures).map((head) => toColumn(head, head, "descending", "number")),
        ]}
        rows={sortRows(rows, sortValue, sort).map((row) => [
          ...renderNames(view, members, row),
          ...Object.entries(figures).map(([head, figureIn]) => {
            const figure = figureIn(row);
            return head === FIRST_CLICK && figure != null ? formatDuration(Math.round(figure / 1_000)) : figure;
          }),
        ])}
        isTall
      />
      <p class="quiet">
        Bars in the charts are 95 % intervals (Wilson). Rates count each message from the moment it is sent, so those of
        the last hours still rise as people answer and click. {note}
      </p>
      {omitted === 0 ? null : <p>{grouped(omitted)} earlier rows are left out: choose fewer days.</p>}
      <p>
        <A href={csv}>All figures as of now, as CSV</A>
      </p>
    </Section>
  );
}

/**
 * Shows the text of the configured message, if one of the rows is about it. The text of an earlier template is not
 * shown here.
 */
function Text({ view, results: { rows } }: ResultsProps & { readonly view: View }): VNode | null {
  const { template } = view.settings;
  if (template === undefined || !rows.some((row) => row.template === template.id)) return null;
  return (
    <Section id="text" title={<>The message {<bdi>{template.name ?? template.id}</bdi>}</>}>
      <pre>{template.text}</pre>
    </Section>
  );
}
