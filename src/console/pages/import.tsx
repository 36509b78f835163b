/** @jsxImportSource preact */
import type { VNode } from "preact";
import { DATE_ORDERS, type DateOrder } from "../../recipients/parse-day.ts";
import { type CellNote, describeCellNote } from "../../recipients/file/cell-notes.ts";
import { SENT_BYTES_MAX, SENT_SUPPRESSIONS_BYTES_MAX } from "../../recipients/file/format.ts";
import { ActionForm, ConfirmedAction, Field, Select } from "../parts/action-form.tsx";
import { grouped } from "../../platform/counts-and-lists.ts";
import { join, other } from "../../history/words/sentence.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { Words } from "../parts/events.tsx";
import { breakable, OnlyFirst, Table } from "../parts/table.tsx";
import { consolePage, type ConsolePage, type View } from "../page-context.ts";
import { A } from "../parts/link.tsx";

/** Most rows listed of each kind; the first ones show what is wrong with the file. */
const ROWS_SHOWN_MAX = 200;

/** Rows of a file that could not be used. Their values are other people's texts. */
interface RefusedRows {
  readonly refused: number;
  readonly refused_rows: readonly { readonly line: number; readonly value: string; readonly reason: string }[];
}

/** Cells that were not read as they stand. */
interface NotedCells {
  readonly noted_cells: number;
  readonly notes: readonly CellNote[];
}

/** The result of a list of suppressions, as the API answers it. */
interface SuppressionsReport extends RefusedRows, NotedCells {
  readonly added: number;
  readonly repeated: number;
}

/** The result of a file of recipients, as the API answers it. */
interface ImportReport extends RefusedRows, NotedCells {
  readonly added: number;
  readonly updated: number;
  readonly without_consent: number;
  readonly without_evidence: number;
  readonly revoked: number;
  readonly template_fields: readonly string[];
  readonly duplicates: number;
  readonly duplicate_rows: readonly { readonly line: number; readonly of: number }[];
}

/** The result of an import. It is recorded nowhere, so it is shown in place of the page and never refreshed. */
export function importReportPage(report: ImportReport): ConsolePage {
  const { added, updated, without_consent, without_evidence, revoked, template_fields: fields } = report;
  return consolePage({
    reads: ["account", "runs"],
    render: (view) => (
      <ConsoleDocument title="Import" path="/people" view={view} isStill>
        <h1>Import</h1>
        <p>
          {grouped(added)} added, {grouped(updated)} updated, {grouped(report.refused)} refused.
        </p>
        {without_consent === 0 ? null : (
          <p>
            {grouped(without_consent)} of them without consent: their basis is none or missing, so they get no message
            while <code>REQUIRE_CONSENT</code> is true or evidence.
          </p>
        )}
        {without_evidence === 0 ? null : (
          <p>
            {grouped(without_evidence)} of them without evidence: consent_at or consent_source is missing, so they get
            no message while <code>REQUIRE_CONSENT</code> is evidence.
          </p>
        )}
        {revoked === 0 ? null : (
          <p>{grouped(revoked)} of them had consent before: the file revokes it by the basis none.</p>
        )}
        {fields.length === 0 ? null : (
          <p>
            Template fields:{" "}
            <Words
              view={view}
              sentence={join(
                fields.map((name) => [other(name)]),
                ", ",
              )}
            />
            .
          </p>
        )}
        <Noted {...report} />
        <Refused {...report} />
        <Duplicates {...report} />
        <p>
          <A href="/people">All people</A>
        </p>
      </ConsoleDocument>
    ),
  });
}

/** The result of an import of suppressions. It is recorded nowhere either. */
export function suppressionsReportPage(report: SuppressionsReport): ConsolePage {
  const { added, repeated, refused } = report;
  return consolePage({
    reads: ["account"],
    render: (view) => (
      <ConsoleDocument title="Import" path="/people" view={view} isStill>
        <h1>Import of suppressions</h1>
        <p>
          {grouped(added)} added, {grouped(repeated)} suppressed before, {grouped(refused)} refused.
        </p>
        <Noted {...report} />
        <Refused {...report} />
        <p>
          <A href="/people?status=suppressed">Suppressed people</A>
        </p>
      </ConsoleDocument>
    ),
  });
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
      <ul>
        {notes.map((note) => (
          <li>
            <bdi>{describeCellNote(note)}</bdi>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Duplicates({ duplicates, duplicate_rows: rows }: ImportReport): VNode | null {
  if (duplicates === 0) return null;
  return (
    <Section id="duplicates" title="The same person twice">
      <OnlyFirst shown={ROWS_SHOWN_MAX} count={duplicates} />
      <ul>
        {rows.slice(0, ROWS_SHOWN_MAX).map(({ line, of }) => (
          <li>
            Line {grouped(line)} counts in place of line {grouped(of)}.
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The form that imports a file of recipients, chosen in the browser. */
export function ImportForm({ view }: { readonly view: View }): VNode | null {
  if (view.formToken === undefined) return null;
  return (
    <Section id="import" title="Import people">
      <p class="quiet" id="import-says">
        A CSV, JSON or JSON Lines file of up to {SENT_BYTES_MAX / 2 ** 20} MiB, with the columns username (or handle)
        and/or id, name, basis, consent_at, consent_source, consent_text, tracking, tracking_at, tracking_source and
        tracking_text; all other columns become template fields. Known people are updated; what the file has no column
        for stays as it is.
      </p>
      <ActionForm view={view} back="/people" action="/console/recipients" sendsFile>
        <FileField describedBy="import-says" /> <DatesField /> <button class="primary">Import</button>
      </ActionForm>
    </Section>
  );
}

/** The form that imports a list of suppressions, and links that export it. */
export function SuppressionsForm({ view }: { readonly view: View }): VNode | null {
  if (view.formToken === undefined) return null;
  return (
    <Section id="suppressions" title="Suppression list">
      <ConfirmedAction
        view={view}
        back="/people"
        action="/console/suppressions"
        sendsFile
        isDangerous
        label="Suppress all people of a file…"
        says={
          <span id="suppressions-says">
            <b>The people in the file never get a message again, even after another import. This cannot be undone.</b> A
            CSV, JSON or JSON Lines file of up to {SENT_SUPPRESSIONS_BYTES_MAX / 2 ** 20} MiB, with the columns username
            (or handle), id and/or hash, reason and suppressed_at.
          </span>
        }
      >
        <FileField describedBy="suppressions-says" /> <DatesField />{" "}
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

const ORDERS: Readonly<Record<DateOrder, string>> = {
  dmy: "day first (dmy)",
  mdy: "month first (mdy)",
};

function DatesField(): VNode {
  return (
    <Select
      name="dates"
      label="Dates such as 3/2/2026"
      values={DATE_ORDERS}
      inWords={(order) => ORDERS[order]}
      none="are refused"
    />
  );
}

function FileField({ describedBy }: { readonly describedBy: string }): VNode {
  return (
    <Field
      label="File"
      type="file"
      name="file"
      accept=".csv,.tsv,.txt,.json,.jsonl,.ndjson"
      required
      aria-describedby={describedBy}
    />
  );
}
