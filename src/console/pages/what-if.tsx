/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { eventHref, type RecipientNames } from "../hrefs.ts";
import { ActionForm, Field, Lines, Select } from "../parts/action-form.tsx";
import { RecipientLink } from "../parts/event-sentence.tsx";
import { numbers, OnlyFirst, Sentences, Table } from "../parts/table.tsx";
import { consolePage, type ConsolePage, type Notice, useView, type View } from "../page-context.ts";
import { formatContactName } from "./people.tsx";
import { Figure } from "./results.tsx";
import { A } from "../parts/links-forms-and-tabs.tsx";

/** Comparison of the log's runs with the runs that other rules would have led to, as rows and sentences. */
interface ShownReport {
  readonly runs: { readonly was: number; readonly would: number };
  /** Position of the last event that the what-if calculation has taken into account. */
  readonly position: number;
  /** Position of the event that records which rules the operator asked to see changed. */
  readonly recordedAt: number;
  /** True if nothing would have been different under the other rules. */
  readonly isSame: boolean;
  readonly rows: readonly {
    readonly day: string;
    readonly what: string;
    readonly was: number;
    readonly would: number;
    readonly difference: string;
    readonly unknown: number | undefined;
  }[];
  /** Sentences on what the log cannot tell, and on what the answer assumes to be unchanged. */
  readonly open: readonly string[];
  /** Recipients whose messages or skips would differ under the rules that the operator entered in the page's form. */
  readonly lists: readonly {
    readonly name: string;
    readonly title: string;
    readonly count: number;
    readonly shown: readonly { readonly recipient: RecipientNames; readonly was: string; readonly would: string }[];
  }[];
}

/** Page What if: a form that asks what other rules would have done to the runs in the log. */
export const whatIfPage = consolePage({
  reads: ["account"],
  render: (view) => <RulesPage view={view} fields={{}} />,
});

/** The page What if after an invalid input: it shows the fault and the entered rules. */
export function whatIfFormPage(notice: Notice, fields: RuleFields): ConsolePage {
  return consolePage({
    reads: ["account"],
    render: (view) => <RulesPage view={{ ...view, notice }} fields={fields} />,
  });
}

/** The page What if with the answer. The comparison is recorded nowhere, so the page is never refreshed. */
export function whatIfReportPage(report: ShownReport, fields: RuleFields): ConsolePage {
  const { runs, position, recordedAt, open, lists } = report;
  return consolePage({
    reads: ["account"],
    render: (view) => (
      <RulesPage view={view} fields={fields}>
        <Totals isSame={report.isSame} rows={report.rows} />
        <Open sentences={open} />
        {lists.map((list) => (
          <List {...list} />
        ))}
        <Days rows={report.rows} />
        <p>
          {countInWords(runs.was, "run")} made, {grouped(runs.would)} by the other rules, up to position{" "}
          {grouped(position)}. <A href={eventHref(recordedAt)}>The event that records this question</A>
        </p>
      </RulesPage>
    ),
  });
}

/** Values of the form's fields, by the name of the rule. */
type RuleFields = Readonly<Record<string, string>>;

interface RulesPageProps {
  readonly view: View<"account">;
  /** Rules as the operator entered them. */
  readonly fields: RuleFields;
  readonly children?: ComponentChildren;
}

function RulesPage({ view, fields, children }: RulesPageProps): VNode {
  return (
    <ConsoleDocument title="What if" path="/results" view={view} isStill>
      <Head
        title="What other rules would have done"
        says="All runs of the log are decided again by these rules, and nothing is sent. An empty field stays as it was."
      />
      {view.asOf === undefined ? (
        <RulesForm fields={fields} />
      ) : (
        <p class="empty">
          Rules cannot be compared on a page of the past.{" "}
          <a href="/what-if" data-moment>
            Back to now
          </a>
        </p>
      )}
      {children}
    </ConsoleDocument>
  );
}

/** Rules that the form shows at once; the others are in a part that unfolds. */
const FIRST_RULES = ["DAILY_LIMIT", "REQUIRE_CONSENT", "SEND_WINDOW", "STOP_AFTER_FAILURES"];

const CONSENT = { true: "required", evidence: "required with date and source", false: "not required" } as const;
const CONSENT_VALUES = ["true", "evidence", "false"] as const;

function RulesForm({ fields }: { readonly fields: RuleFields }): VNode {
  const { dailyLimit, requireConsent, window, whatIfRules } = useView().settings;
  const others = whatIfRules.filter((name) => !FIRST_RULES.includes(name));
  const today = (value: string): string => `today: ${value}`;
  return (
    <ActionForm back="/what-if" action="/console/what-if">
      <div class="filter">
        <Field
          label="Messages a day"
          name="DAILY_LIMIT"
          inputMode="numeric"
          value={fields["DAILY_LIMIT"]}
          placeholder={today(grouped(dailyLimit))}
        />
        <Select
          label="Consent"
          name="REQUIRE_CONSENT"
          values={CONSENT_VALUES}
          chosen={CONSENT_VALUES.find((value) => value === fields["REQUIRE_CONSENT"])}
          inWords={(value) => CONSENT[value]}
          none={today(CONSENT[`${requireConsent}`])}
        />
        <Field
          label="Sending window"
          name="SEND_WINDOW"
          value={fields["SEND_WINDOW"]}
          placeholder={today(window?.text ?? "at any time")}
        />
        <Field
          label="End a run at failures of"
          name="STOP_AFTER_FAILURES"
          value={fields["STOP_AFTER_FAILURES"]}
          placeholder="such as 30%"
        />
      </div>
      <details open={others.some((name) => fields[name])}>
        <summary>{others.length} more rules</summary>
        <p class="quiet">
          As in the settings; <code>none</code> unsets one.
        </p>
        <div class="filter">
          {others.map((name) =>
            name === "MESSAGE_TEMPLATE" ? (
              <Lines label={name} name={name} value={fields[name] ?? ""} rows={3} />
            ) : (
              <Field label={name} name={name} value={fields[name]} />
            ),
          )}
        </div>
      </details>
      <button class="primary">Compare</button>
    </ActionForm>
  );
}

/**
 * Shows how past runs would differ under other rules, summed over all days: each count (sent, clicked, skipped by
 * reason) as it would be and as it was.
 */
function Totals({ isSame, rows }: { readonly isSame: boolean; readonly rows: ShownReport["rows"] }): VNode {
  return (
    <Section id="counts" title={isSame ? "Nothing differs" : "What differs"}>
      <dl class="card figures">
        {rows.flatMap(({ day, what, was, would, difference, unknown }) =>
          day === TOTAL ? (
            <Figure
              title={what}
              value={grouped(would)}
              change={was === would ? "unchanged" : `${difference}, was ${grouped(was)}`}
            >
              {unknown ? `${grouped(unknown)} unknown` : undefined}
            </Figure>
          ) : (
            []
          ),
        )}
      </dl>
    </Section>
  );
}

/** Value in place of the day, in rows with the sums of all days. */
const TOTAL = "total";

function Days({ rows }: { readonly rows: ShownReport["rows"] }): VNode | null {
  const days = rows.filter(({ day }) => day !== TOTAL);
  if (days.length === 0) return null;
  return (
    <Section id="days" title="Day by day">
      <Table
        label="Counts"
        columns={["day", "what", ...numbers("was", "would be", "difference", "unknown")]}
        rows={days.map((row) => [row.day, row.what, row.was, row.would, row.difference, row.unknown])}
        isTall
      />
    </Section>
  );
}

function Open({ sentences }: { readonly sentences: readonly string[] }): VNode | null {
  if (sentences.length === 0) return null;
  return (
    <Section id="open" title="What stays open">
      <Sentences of={sentences} />
    </Section>
  );
}

function List({ name, title, count, shown }: ShownReport["lists"][number]): VNode | null {
  if (count === 0) return null;
  return (
    <Section id={name} title={`${grouped(count)} ${title}`}>
      <Table
        label={`Table of those who ${title}`}
        columns={["recipient", "was", "would be"]}
        rows={shown.map(({ recipient, was, would }) => [
          <RecipientLink recipient={recipient} name={formatContactName(recipient)} />,
          was,
          would,
        ])}
        isTall
      />
      <OnlyFirst shown={shown.length} count={count} />
    </Section>
  );
}
