/** @jsxImportSource preact */
import type { VNode } from "preact";
import { grouped, countInWords } from "../../platform/format-numbers-and-lists.ts";
import { dayInWords, MappedColumn, reasonInWords, type Preview } from "./import-columns.tsx";
import { ConsentOfAllRows, LackingConsent } from "./import-consent.tsx";
import { CHOICE_WORDS, FileField } from "../parts/action-form.tsx";
import { Badge } from "../parts/icon-and-badge.tsx";
import { A, HiddenFields } from "../parts/links-forms-and-tabs.tsx";
import { Sentences } from "../parts/table.tsx";
import { FaultNotice } from "../document.tsx";
import { useView, type Notice, type View } from "../page-context.ts";

/**
 * Number of refused lines that the page lists if there are more than {@link LINES_SHOWN_MAX}. A link downloads the
 * others.
 */
const LINES_SHOWN = 20;
const LINES_SHOWN_MAX = 25;

interface ImportFormProps {
  readonly view: View;
  /** Preview of the chosen file. Undefined before a file is chosen. */
  readonly preview?: Preview | undefined;
  /** Reason why the chosen file cannot be used. */
  readonly notice?: Notice | undefined;
}

/**
 * The form of an import, as a page or a dialog: first a file to choose, then its preview, whose last button imports it.
 */
export function ImportForm({ view, preview, notice }: ImportFormProps): VNode | null {
  if (view.formToken === undefined) return null;
  return (
    <form
      id="import"
      class="card import"
      method="post"
      action={preview === undefined ? PREVIEW : "/console/recipients"}
      encType="multipart/form-data"
      data-preview={PREVIEW}
      aria-labelledby="import-title"
    >
      <HiddenFields of={Object.entries({ form_token: view.formToken, back: "/people", ...preview?.kept })} />
      <FaultNotice>{notice && <bdi>{notice.text}</bdi>}</FaultNotice>
      <p class="busy">Reading the file…</p>
      {preview === undefined ? <FileChoice /> : <PreviewedFile preview={preview} />}
    </form>
  );
}

const PREVIEW = "/console/recipients/preview";

function FileChoice(): VNode {
  const { recipientsBytes } = useView().settings.limits;
  return (
    <>
      <header>
        <h2 id="import-title">Import people</h2>
        <p class="quiet" id="import-says">
          A CSV, JSON or JSON Lines file of up to {recipientsBytes / 2 ** 20} MiB with a handle or an id in each row.
          The next step shows what would be imported; nothing is written before.
        </p>
      </header>
      <FileField describedBy="import-says" />
      <footer>
        <Cancel />
        <button class="primary">Preview</button>
      </footer>
    </>
  );
}

function Cancel(): VNode {
  return (
    <A class="button" href="/people" data-cancel>
      Cancel
    </A>
  );
}

type PreviewProps = { readonly preview: Preview };

function PreviewedFile({ preview }: PreviewProps): VNode {
  const { kept, fault, added, updated, unchanged, without_consent: without } = preview;
  const usable = added + updated + unchanged;
  const unproved =
    preview.without_evidence === 0 ? "" : `, ${grouped(preview.without_evidence)} without its date or source`;
  const sums = [
    ["New", added, ""],
    ["Updated", updated, ""],
    ["Unchanged", unchanged, ""],
    ["Repeated", preview.duplicates, ""],
    ["Refused", preview.refused, "bad"],
  ] as const;
  return (
    <>
      <PreviewHead preview={preview} />
      {kept.kept === undefined ? (
        <div>
          <p class="quiet" id="import-again">
            The file is too large for this page to keep it: choose it once more.
          </p>
          <FileField describedBy="import-again" />
        </div>
      ) : null}
      <FaultNotice>{fault && <bdi>No row can be imported: {fault}.</bdi>}</FaultNotice>
      {fault === undefined ? <ConsentOfAllRows preview={preview} /> : null}
      <dl class="sums" aria-label="What the import would do">
        {sums.map(([name, count, tone]) => (
          <div>
            <dt>{name}</dt>
            <dd class={count === 0 ? "" : tone}>
              {tone === "bad" && count > 0 ? <a href="#refused-lines">{grouped(count)}</a> : grouped(count)}
            </dd>
          </div>
        ))}
      </dl>
      <LackingConsent preview={preview} />
      <section>
        <h3>Columns</h3>
        <ul class="map">
          {preview.columns.map((_column, index) => (
            <MappedColumn index={index} preview={preview} />
          ))}
        </ul>
      </section>
      <RefusedLines preview={preview} />
      <FinishedPeople preview={preview} />
      <Remarks preview={preview} />
      <footer>
        <p role="status">
          {usable === 0
            ? "Nothing would be imported."
            : `Imports ${countInWords(usable, "person", "people")}; ${grouped(usable - without)} of them with consent${unproved}.`}
        </p>
        <Cancel />
        <button class="again" formAction={PREVIEW}>
          Preview again
        </button>
        {usable === 0 ? null : <button class="primary">Import {countInWords(usable, "person", "people")}</button>}
      </footer>
    </>
  );
}

function PreviewHead({ preview: { kept, rows, delimiter } }: PreviewProps): VNode {
  const separator = delimiter === undefined ? "" : `, separated by ${delimiter === "\t" ? "tabs" : `“${delimiter}”`}`;
  return (
    <header>
      <h2 id="import-title">
        Import <bdi class="breakable">{kept.kept_name}</bdi>
      </h2>
      <p class="quiet">
        {countInWords(rows, "row", "rows")}
        {separator}. Nothing is imported yet.
      </p>
    </header>
  );
}

function FinishedPeople({ preview: { finished } }: PreviewProps): VNode | null {
  if (finished.length === 0) return null;
  return (
    <section>
      <h3>How the first {finished.length === 1 ? "person" : `${finished.length} people`} will look</h3>
      <ul class="peek">
        {finished.map(({ line, id, username, name, basis, consent_at, consent_source, fields, message, missing }) => (
          <li>
            <p>
              <b>{username === undefined ? id : `@${username}`}</b> <bdi>{name}</bdi>{" "}
              <span class="quiet">line {grouped(line)}</span>
            </p>
            {Object.entries(fields).map(([field, value]) => (
              <p>
                <bdi>{field}</bdi>: <bdi>{value}</bdi>
              </p>
            ))}
            <p>
              <Badge
                state={
                  basis === undefined || basis === "none"
                    ? ["warn", "triangleAlert", "No consent"]
                    : ["good", "check", CHOICE_WORDS[basis] ?? ""]
                }
              />{" "}
              {consent_at === undefined ? null : dayInWords(consent_at)} <bdi>{consent_source}</bdi>
            </p>
            {message === undefined ? null : (
              <p class="bubble message">
                <bdi>{message}</bdi>
              </p>
            )}
            {missing === undefined || missing.length === 0 ? null : (
              <p class="quiet">
                No message: <bdi>{missing.join(", ")}</bdi> is missing.
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function RefusedLines({ preview: { refused, refused_rows: rows, refusedCsv } }: PreviewProps): VNode | null {
  if (refused === 0) return null;
  const shown = refused > LINES_SHOWN_MAX ? LINES_SHOWN : LINES_SHOWN_MAX;
  return (
    <section id="refused-lines">
      <h3>
        Refused <span class="badge bad">{grouped(refused)}</span>
      </h3>
      <ul class="refused">
        {rows.slice(0, shown).map(({ line, value, reason }) => (
          <li>
            <span class="quiet">line {grouped(line)}</span>
            <code>
              <bdi>{value}</bdi>
            </code>
            <bdi>{reasonInWords(reason)}</bdi>
          </li>
        ))}
      </ul>
      {refused <= shown ? null : (
        <p>
          The first {shown} of {grouped(refused)}.{" "}
          <a
            href={`data:text/csv;charset=utf-8,${encodeURIComponent(refusedCsv.text.toWellFormed())}`}
            download="refused-lines.csv"
          >
            Download {refusedCsv.lines === refused ? "all" : "the first"} {grouped(refusedCsv.lines)}
          </a>
        </p>
      )}
    </section>
  );
}

/**
 * Shows all other differences between the file and what is imported: repeated rows, revocations, and notes on cells.
 */
function Remarks({ preview: { duplicates, revoked, notes } }: PreviewProps): VNode | null {
  const remarks = [
    ...(duplicates === 0
      ? []
      : [`${countInWords(duplicates, "row names", "rows name")} a person of an earlier row: the last row counts.`]),
    ...(revoked === 0 ? [] : [`${countInWords(revoked, "person", "people")} had consent before: the file revokes it.`]),
    ...notes,
  ];
  if (remarks.length === 0) return null;
  return (
    <section>
      <h3>Read otherwise than written</h3>
      <Sentences of={remarks} />
    </section>
  );
}
