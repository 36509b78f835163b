/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { ConsoleDocument, grouped } from "./document.tsx";
import type { Page } from "./view.ts";

/** Rows named of each kind: the first ones show what is wrong with the file. */
const ROWS_SHOWN_MAX = 200;

/** What came of a file of recipients. Its values are other people's texts. */
export interface ImportView {
  readonly added: number;
  readonly updated: number;
  readonly withoutConsent: number;
  /** Columns that became template fields. */
  readonly fields: readonly string[];
  readonly refused: Some<{ readonly line: number; readonly value: string; readonly reason: string }>;
  readonly duplicates: Some<{ readonly line: number; readonly of: number }>;
}

/** How many there are, and the first of them. */
interface Some<Member> {
  readonly count: number;
  readonly first: readonly Member[];
}

/** What was taken of a file, and what was not. It is recorded nowhere, so it is shown in place of the page, and stands still. */
export function importReportPage(report: ImportView): Page {
  const { added, updated, withoutConsent, fields, refused, duplicates } = report;
  return (view) => (
    <ConsoleDocument title="Import" path="/people" view={view} isStill>
      <h1>Import</h1>
      <p>
        {grouped(added)} added, {grouped(updated)} updated, {grouped(refused.count)} refused.
      </p>
      {withoutConsent === 0 ? null : (
        <p>
          {grouped(withoutConsent)} of them without consent: their basis is none or missing, and nobody writes to them
          while <code>REQUIRE_CONSENT</code> is true.
        </p>
      )}
      {fields.length === 0 ? null : (
        <p>
          Template fields:{" "}
          {fields.map((name, at) => (
            <>
              {at === 0 ? "" : ", "}
              <bdi>{name}</bdi>
            </>
          ))}
          .
        </p>
      )}
      <Rows title="Refused rows" all={refused} heads={["line", "value", "reason"]}>
        {refused.first.slice(0, ROWS_SHOWN_MAX).map(({ line, value, reason }) => (
          <tr>
            <th scope="row">{grouped(line)}</th>
            <td class="breakable">
              <bdi>{value}</bdi>
            </td>
            <td class="breakable">
              <bdi>{reason}</bdi>
            </td>
          </tr>
        ))}
      </Rows>
      <Rows title="The same person twice" all={duplicates} heads={["this row counts", "in place of"]}>
        {duplicates.first.slice(0, ROWS_SHOWN_MAX).map(({ line, of }) => (
          <tr>
            <th scope="row">line {grouped(line)}</th>
            <td>line {grouped(of)}</td>
          </tr>
        ))}
      </Rows>
      <p>
        <a href="/people">All people</a>
      </p>
    </ConsoleDocument>
  );
}

interface RowsProps {
  readonly title: string;
  readonly all: Some<unknown>;
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
}

/** A table of what was remarked; nothing where there is nothing. */
function Rows({ title, all, heads, children }: RowsProps): VNode | null {
  if (all.count === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      {all.count > ROWS_SHOWN_MAX ? (
        <p>
          The first {grouped(ROWS_SHOWN_MAX)} of {grouped(all.count)}.
        </p>
      ) : null}
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead>
            <tr>
              {heads.map((head) => (
                <th scope="col">{head}</th>
              ))}
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      </div>
    </section>
  );
}
