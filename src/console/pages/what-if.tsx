/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { WHAT_IF_RULES } from "../../config/what-if.ts";
import {
  describeAssumed,
  describeOutcome,
  describeUnknown,
  LIST_NAMES,
  LISTS,
  toRows,
  type WhatIfReport,
} from "../../outreach/what-if/report.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { eventHref } from "../hrefs.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { RecipientLink } from "../parts/events.tsx";
import { numbers, OnlyFirst, Table } from "../parts/table.tsx";
import { consolePage, type ConsolePage, type Notice, type View } from "../page-context.ts";
import { formatContactName } from "./people.tsx";
import { A } from "../parts/link.tsx";

/** A form that asks what other rules would have done. */
export const whatIfPage = consolePage({
  reads: ["account"],
  render: renderWhatIf,
});

function renderWhatIf(view: View<"account">): VNode {
  return <RulesPage view={view} text="" />;
}

/** The form again, with the fault and the entered rules. */
export function whatIfFormPage(notice: Notice, { rules = "" }: Readonly<Record<string, string>>): ConsolePage {
  return consolePage({
    reads: ["account"],
    render: (view) => <RulesPage view={{ ...view, notice }} text={rules} />,
  });
}

/** The comparison, shown in place of the page. It is recorded nowhere, so it is never refreshed. */
export function whatIfReportPage(report: WhatIfReport, { rules = "" }: Readonly<Record<string, string>>): ConsolePage {
  const { runs, as_of, recorded_at } = report;
  return consolePage({
    reads: ["account"],
    render: (view) => (
      <RulesPage view={view} text={rules}>
        <Counts report={report} />
        <Open report={report} />
        {LIST_NAMES.map((name) => (
          <List report={report} name={name} />
        ))}
        <p>
          {grouped(runs.was)} runs were made, {grouped(runs.would)} would be, up to position {grouped(as_of.position)}.{" "}
          <A href={eventHref(recorded_at.position)}>The event that records this question</A>
        </p>
      </RulesPage>
    ),
  });
}

interface RulesPageProps {
  readonly view: View<"account">;
  /** The rules as they were entered. */
  readonly text: string;
  readonly children?: ComponentChildren;
}

function RulesPage({ view, text, children }: RulesPageProps): VNode {
  const { dailyLimit, requireConsent, window } = view.settings;
  const today = { DAILY_LIMIT: dailyLimit, REQUIRE_CONSENT: requireConsent, SEND_WINDOW: window?.text ?? null };
  return (
    <ConsoleDocument title="What if" path="/results" view={view} isStill>
      <h1>What other rules would have done</h1>
      <p id="rules-says" class="breakable">
        All runs of the log are decided again by these rules, and nothing is sent. A JSON object with the names and
        values of settings: <code>{WHAT_IF_RULES.join(", ")}</code>. A rule that is not named stays as it was. Some of
        today's: <code>{JSON.stringify(today)}</code>
      </p>
      {view.asOf !== undefined ? (
        <p class="empty">
          Rules cannot be compared on a page of the past.{" "}
          <a href="/what-if" data-moment>
            Back to now
          </a>
        </p>
      ) : null}
      <ActionForm view={view} back="/what-if" action="/console/what-if">
        <label>
          Rules <br />
          <textarea
            name="rules"
            rows={6}
            required
            spellcheck={false}
            placeholder={JSON.stringify(today)}
            aria-describedby="rules-says"
          >
            {text}
          </textarea>
        </label>{" "}
        <button class="primary">Compare</button>
      </ActionForm>
      {children}
    </ConsoleDocument>
  );
}

interface ReportProps {
  readonly report: WhatIfReport;
}

function Counts({ report }: ReportProps): VNode {
  return (
    <Section id="counts" title={report.days.length === 0 ? "Nothing differs" : "What differs"}>
      <Table
        label="Counts"
        columns={["day", "what", ...numbers("was", "would be", "difference", "unknown")]}
        rows={toRows(report).map(({ day, what, was, would, difference, unknown }) => [
          day,
          what,
          was,
          would,
          difference,
          unknown,
        ])}
        isTall
      />
    </Section>
  );
}

/** Sentences on what no log can know, and on what was assumed to be as it was. */
function Open({ report }: ReportProps): VNode | null {
  const sentences = [...describeUnknown(report), ...describeAssumed(report)];
  if (sentences.length === 0) return null;
  return (
    <Section id="open" title="What stays open">
      <ul>
        {sentences.map((sentence) => (
          <li>{sentence}</li>
        ))}
      </ul>
    </Section>
  );
}

function List({ report: { recipients }, name }: ReportProps & { readonly name: keyof typeof LISTS }): VNode | null {
  const { count, shown } = recipients[name];
  if (count === 0) return null;
  return (
    <Section id={name} title={`${grouped(count)} ${LISTS[name]}`}>
      <Table
        label={`Table of those who ${LISTS[name]}`}
        columns={["recipient", "was", "would be"]}
        rows={shown.map(({ recipient, was, would }) => [
          <RecipientLink recipient={recipient} name={formatContactName(recipient)} />,
          describeOutcome(was),
          describeOutcome(would),
        ])}
        isTall
      />
      <OnlyFirst shown={shown.length} count={count} />
    </Section>
  );
}
