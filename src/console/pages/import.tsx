/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { ConfirmedAction, FileField, Select } from "../parts/action-form.tsx";
import type { RunSettings } from "../../outreach/run-and-dry-run-page-data.ts";
import { grouped } from "../../platform/format-numbers-and-lists.ts";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { breakable, OnlyFirst, Sentences, Table } from "../parts/table.tsx";
import type { Preview, RefusedRows } from "./import-columns.tsx";
import { ImportForm } from "./import-form-and-preview.tsx";
import { consolePage, type ConsolePage, type Notice, type View } from "../page-context.ts";
import { A } from "../parts/links-forms-and-tabs.tsx";

/** Maximum number of rows listed for each kind of fault. The first ones show what is wrong with the file. */
const ROWS_SHOWN_MAX = 200;

/** Cells of an imported file that were changed when they were read, or that look wrong. */
interface NotedCells {
  readonly noted_cells: number;
  /**
   * Sentences about cells of the imported file: one for each column, and one for each word that was read as a blank
   * cell.
   */
  readonly notes: readonly string[];
}

/** Result of importing a list of suppressions, as the API answers it. */
export interface SuppressionsReport extends RefusedRows, NotedCells {
  readonly added: number;
  readonly repeated: number;
}

/** Result of importing a file of recipients, as the API answers it. */
export interface ImportReport extends RefusedRows, NotedCells {
  readonly added: number;
  readonly updated: number;
  readonly without_consent: number;
  readonly without_evidence: number;
  readonly revoked: number;
  readonly template_fields: readonly string[];
  readonly duplicates: number;
  readonly duplicate_rows: readonly { readonly line: number; readonly of: number }[];
}

interface ImportPageContent {
  /** Preview of the chosen file. Undefined before a file is chosen. */
  readonly preview?: Preview;
  /** Reason why the chosen file cannot be used. */
  readonly notice?: Notice;
}

/** Page on which an operator chooses a file of recipients, sees what its import would do, and imports it. */
export function importPage(content: ImportPageContent = {}): ConsolePage {
  return consolePage({
    reads: ["account"],
    render: (view) => (
      <ConsoleDocument title="Import" path="/people" view={view} isStill>
        <Head above={<A href="/people">People</A>} title="Import" />
        {view.formToken === undefined ? <p class="empty">Nothing can be imported here.</p> : null}
        <ImportForm view={view} {...content} />
        {content.preview === undefined ? <SuppressionsForm view={view} /> : null}
      </ConsoleDocument>
    ),
  });
}

/**
 * Page with the result of importing recipients. The result is recorded nowhere, so the page is the response to the form
 * and never refreshed.
 */
export function importReportPage(report: ImportReport): ConsolePage {
  const { added, updated, without_consent, without_evidence, revoked, template_fields: fields } = report;
  return consolePage({
    reads: ["account"],
    render(view) {
      const { requireConsent } = view.settings;
      const sentences = [
        `${grouped(added)} added, ${grouped(updated)} updated, ${grouped(report.refused)} refused.`,
        without_consent > 0 &&
          `${grouped(without_consent)} of them without consent: their basis is none or missing${sayHindrance(requireConsent, requireConsent !== false)}.`,
        without_evidence > 0 &&
          `${grouped(without_evidence)} of them without the date or source of their consent${sayHindrance(requireConsent, requireConsent === "evidence")}.`,
        revoked > 0 && `${grouped(revoked)} of them had consent before: the file revokes it by the basis none.`,
        fields.length > 0 && [
          "Template fields: ",
          fields.map((name, at) => [at === 0 ? "" : ", ", <bdi>{name}</bdi>]),
          ".",
        ],
      ];
      return (
        <ReportPage view={view} title="Import" sentences={sentences} report={report}>
          <Duplicates {...report} />
          <p>
            <A href="/people">All people</A>
          </p>
        </ReportPage>
      );
    },
  });
}

/**
 * Returns words that say that these people get no message because of REQUIRE_CONSENT; empty if the setting does not
 * prevent it.
 */
function sayHindrance(requireConsent: RunSettings["requireConsent"], isHindering: boolean): string {
  return isHindering ? `, so they get no message while REQUIRE_CONSENT is ${requireConsent}` : "";
}

/** Page with the result of importing suppressions. The result is recorded nowhere. */
export function suppressionsReportPage(report: SuppressionsReport): ConsolePage {
  const { added, repeated, refused } = report;
  const sentence = `${grouped(added)} added, ${grouped(repeated)} suppressed before, ${grouped(refused)} refused.`;
  return consolePage({
    reads: ["account"],
    render: (view) => (
      <ReportPage view={view} title="Import of suppressions" sentences={[sentence]} report={report}>
        <p>
          <A href="/people?status=suppressed">Suppressed people</A>
        </p>
      </ReportPage>
    ),
  });
}

interface ReportPageProps {
  readonly view: View<"account">;
  readonly title: string;
  /** Sentences on the result. */
  readonly sentences: readonly ComponentChildren[];
  readonly report: RefusedRows & NotedCells;
  readonly children: ComponentChildren;
}

function ReportPage({ view, title, sentences, report, children }: ReportPageProps): VNode {
  return (
    <ConsoleDocument title="Import" path="/people" view={view} isStill>
      <h1>{title}</h1>
      {sentences.map((sentence) => sentence && <p>{sentence}</p>)}
      <Noted {...report} />
      <Refused {...report} />
      {children}
    </ConsoleDocument>
  );
}

function Refused({ refused, refused_rows: rows }: RefusedRows): VNode | null {
  if (refused === 0) return null;
  return (
    <Section id="refused" title="Refused rows">
      <OnlyFirst shown={ROWS_SHOWN_MAX} count={refused} />
      <Table
        label="Table of refused rows"
        columns={["row", ...breakable("value", "reason")]}
        rows={rows
          .slice(0, ROWS_SHOWN_MAX)
          .map(({ line, value, reason }) => [`line ${grouped(line)}`, <bdi>{value}</bdi>, <bdi>{reason}</bdi>])}
        isTall
      />
    </Section>
  );
}

function Noted({ noted_cells: count, notes }: NotedCells): VNode | null {
  if (count === 0) return null;
  return (
    <Section id="notes" title="Cells to look at">
      <Sentences of={notes} />
    </Section>
  );
}

function Duplicates({ duplicates, duplicate_rows: rows }: ImportReport): VNode | null {
  if (duplicates === 0) return null;
  return (
    <Section id="duplicates" title="The same person twice">
      <OnlyFirst shown={ROWS_SHOWN_MAX} count={duplicates} />
      <Sentences
        of={rows
          .slice(0, ROWS_SHOWN_MAX)
          .map(({ line, of }) => `Line ${grouped(line)} counts in place of line ${grouped(of)}.`)}
      />
    </Section>
  );
}

/** The form that imports a list of suppressions, and links that export it. */
function SuppressionsForm({ view }: { readonly view: View }): VNode | null {
  if (view.formToken === undefined) return null;
  return (
    <Section id="suppressions" title="Suppression list">
      <ConfirmedAction
        back="/people"
        action="/console/suppressions"
        sendsFile
        isDangerous
        label="Suppress all people of a file…"
        says={
          <span id="suppressions-says">
            <b>The people in the file never get a message again, even after another import. This cannot be undone.</b> A
            CSV, JSON or JSON Lines file of up to {view.settings.limits.suppressionsBytes / 2 ** 20} MiB, with the
            columns username (or handle), id and/or hash, reason and suppressed_at.
          </span>
        }
      >
        <FileField describedBy="suppressions-says" />{" "}
        <Select
          name="dates"
          label="Dates such as 3/2/2026"
          values={["dmy", "mdy"]}
          inWords={(order) => (order === "dmy" ? "day first (dmy)" : "month first (mdy)")}
          none="are refused"
        />{" "}
        <button>Suppress all people of the file for good</button>
      </ConfirmedAction>
      <p>
        <A href="/social/suppressions" download>
          The list as CSV
        </A>{" "}
        or{" "}
        <A href="/social/suppressions?hashed=true" download>
          with hashes in place of names
        </A>
      </p>
    </Section>
  );
}
