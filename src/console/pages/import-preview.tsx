/** @jsxImportSource preact */
import type { VNode } from "preact";
import { grouped, countInWords } from "../../platform/counts-and-lists.ts";
import { BASIS_WORDS } from "./people.tsx";
import { FileField } from "../parts/action-form.tsx";
import { Badge, Icon } from "../parts/icon.tsx";
import { A } from "../parts/link.tsx";
import type { Notice, View } from "../page-context.ts";

/** Maximum number of refused lines that the page lists. A link downloads the others. */
const LINES_SHOWN = 20;

interface Column {
  readonly name: string;
  readonly example: string;
  readonly column: string | null;
  readonly why: "named" | "chosen" | "guessed" | "field" | "unused" | "opt_out";
  readonly is_unclear: boolean;
}

interface Dates {
  readonly example: string;
  readonly dmy: string;
  readonly mdy: string;
  readonly order: "dmy" | "mdy" | null;
  readonly is_proven: boolean;
}

interface Finished {
  readonly line: number;
  readonly id?: string;
  readonly username?: string;
  readonly name?: string;
  readonly basis?: keyof typeof BASIS_WORDS;
  readonly consent_at?: string;
  readonly consent_source?: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly message?: string;
  readonly missing?: readonly string[];
}

/** Preview of an import, as the API answers it, with the hidden fields of its form. */
export interface Preview {
  readonly rows: number;
  readonly delimiter?: string;
  readonly columns: readonly Column[];
  readonly dates?: Dates;
  readonly fault?: string;
  readonly added: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly without_consent: number;
  readonly revoked: number;
  readonly duplicates: number;
  readonly finished: readonly Finished[];
  readonly refused: number;
  readonly refused_rows: readonly { readonly line: number; readonly value: string; readonly reason: string }[];
  readonly notes: readonly string[];
  /** Names of our columns, to which a column of the file can be assigned. */
  readonly known: readonly string[];
  /** Template fields that the message uses. */
  readonly fields: readonly string[];
  /** Hidden fields with which the page keeps the file for the next form. `kept` is absent if the file is too large. */
  readonly kept: { readonly kept_name: string; readonly kept?: string; readonly kept_sha256: string };
  /** True if the operator has chosen the order of the dates. */
  readonly isDated: boolean;
  /** Refused lines as CSV, as many as fit in a page. */
  readonly refusedCsv: { readonly text: string; readonly lines: number };
}

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
  const hidden = { form_token: view.formToken, back: "/people", ...preview?.kept };
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
      {Object.entries(hidden).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {notice === undefined ? null : (
        <p class="notice fault" role="alert">
          <bdi>{notice.text}</bdi>
        </p>
      )}
      {preview === undefined ? <FileChoice view={view} /> : <PreviewedFile preview={preview} />}
    </form>
  );
}

const PREVIEW = "/console/recipients/preview";

function FileChoice({ view }: { readonly view: View }): VNode {
  return (
    <>
      <header>
        <h2 id="import-title">Import people</h2>
        <p class="quiet" id="import-says">
          A CSV, JSON or JSON Lines file of up to {view.settings.limits.recipientsBytes / 2 ** 20} MiB with a handle or
          an id in each row. The next step shows what would be imported; nothing is written before.
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

interface PreviewProps {
  readonly preview: Preview;
}

function PreviewedFile({ preview }: PreviewProps): VNode {
  const { kept, rows, delimiter, fault, added, updated, unchanged, without_consent: without } = preview;
  const usable = added + updated + unchanged;
  const separator = delimiter === undefined ? "" : `, separated by ${delimiter === "\t" ? "tabs" : `“${delimiter}”`}`;
  return (
    <>
      <header>
        <h2 id="import-title">
          Import <bdi class="breakable">{kept.kept_name}</bdi>
        </h2>
        <p class="quiet">
          {countInWords(rows, "row", "rows")}
          {separator}. Nothing is imported yet.
        </p>
      </header>
      {kept.kept === undefined ? (
        <div>
          <p class="quiet" id="import-again">
            The file is too large for this page to keep it: choose it once more.
          </p>
          <FileField describedBy="import-again" />
        </div>
      ) : null}
      {fault === undefined ? null : (
        <p class="notice fault" role="alert">
          No row can be imported: <bdi>{fault}</bdi>.
        </p>
      )}
      <dl class="sums" aria-label="What the import would do">
        <Sum name="New" count={added} />
        <Sum name="Updated" count={updated} />
        <Sum name="Unchanged" count={unchanged} />
        <Sum name="No consent" count={without} tone="warn" />
        <Sum name="Refused" count={preview.refused} tone="bad" />
      </dl>
      <section>
        <h3>Columns</h3>
        <ul class="map">
          {preview.columns.map((column, index) => (
            <MappedColumn column={column} index={index} preview={preview} />
          ))}
        </ul>
      </section>
      <FinishedPeople preview={preview} />
      <RefusedLines preview={preview} />
      <Remarks preview={preview} />
      <footer>
        <p role="status">
          {usable === 0
            ? "Nothing would be imported."
            : `Imports ${countInWords(usable, "person", "people")}; ${grouped(usable - without)} of them with consent.`}
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

function Sum({ name, count, tone }: { name: string; count: number; tone?: "warn" | "bad" }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={count === 0 ? undefined : tone}>{grouped(count)}</dd>
    </div>
  );
}

interface MappedColumnProps extends PreviewProps {
  readonly column: Column;
  readonly index: number;
}

/** Shows a column of the file, what it becomes, and a question if that is unclear. Only unclear columns are amber. */
function MappedColumn({ column: of, index, preview }: MappedColumnProps): VNode {
  const { name, example, column, why } = of;
  const { known, fields, dates, isDated } = preview;
  const isDate = column?.endsWith("_at") === true && known.includes(column) && dates !== undefined;
  const isDateUnclear = isDate && dates.example !== "" && !dates.is_proven && !isDated;
  const isUnclear = of.is_unclear || isDateUnclear;
  const own = name.trim().replace(/\s+/g, " ").toLowerCase();
  const others = [...new Set([...fields, own, ...(column === null ? [] : [column])])].filter(
    (one) => !known.includes(one),
  );
  return (
    <li class={isUnclear ? "asks" : undefined}>
      <label class="from" for={`map-${index}`}>
        <bdi>{name}</bdi>
      </label>
      <bdi class="eg">{example}</bdi>
      <select id={`map-${index}`} name={`map_${index}`}>
        {known.map((one) => (
          <option value={`${name}=${one}`} selected={one === column}>
            {one}
          </option>
        ))}
        {others.map((one) => (
          <option value={`${name}=${one}`} selected={one === column}>
            field {one}
          </option>
        ))}
        <option value={`${name}=`} selected={column === null}>
          do not import
        </option>
      </select>
      <Icon name={isUnclear ? "triangle-alert" : column === null ? "x" : "check"} />
      <div class="hint">
        {isUnclear ? <b>Please check. </b> : null}
        {why === "guessed" && column !== null ? (
          <>
            Did you mean <b>{column}</b>?{" "}
          </>
        ) : null}
        {of.is_unclear && why !== "opt_out" ? "Another column becomes the same: choose one of the two. " : null}
        {why === "opt_out" ? "Rows that say yes here are refused: import them as a suppression list. " : null}
        {why === "unused" ? "No message uses it, so it stays out of the log. " : null}
        {why !== "named" && column !== null ? YES_NO[column] : null}
        {isDate ? <DateOrder dates={dates} /> : null}
      </div>
    </li>
  );
}

const YES_NO: Readonly<Record<string, string>> = {
  basis: "“yes” becomes opt_in, and “no” becomes none. ",
  tracking: "“yes” becomes granted, and “no” becomes denied. ",
};

function DateOrder({ dates }: { readonly dates: Dates }): VNode {
  const { example, order } = dates;
  if (example === "") return <input type="hidden" name="dates" value={order ?? ""} />;
  return (
    <fieldset>
      <legend>
        Is <bdi>{example}</bdi> the
      </legend>
      {(["dmy", "mdy"] as const).map((one) => (
        <label>
          <input type="radio" name="dates" value={one} checked={one === order} /> {inWords(dates[one])}
        </label>
      ))}
    </fieldset>
  );
}

/** Writes a day with the name of its month, so that day and month cannot be confused. */
function inWords(day: string): string {
  const date = new Date(`${day.slice(0, 10)}T00:00:00Z`);
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
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
                    ? ["warn", "triangle-alert", "No consent"]
                    : ["good", "check", BASIS_WORDS[basis]]
                }
              />{" "}
              {consent_at === undefined ? null : inWords(consent_at)} <bdi>{consent_source}</bdi>
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
  return (
    <section>
      <h3>
        Refused <span class="badge bad">{grouped(refused)}</span>
      </h3>
      <ul class="refused">
        {rows.slice(0, LINES_SHOWN).map(({ line, value, reason }) => (
          <li>
            <span class="quiet">line {grouped(line)}</span>
            <code>
              <bdi>{value}</bdi>
            </code>
            <bdi>{reason}</bdi>
          </li>
        ))}
      </ul>
      {refused <= LINES_SHOWN ? null : (
        <p>
          The first {LINES_SHOWN} of {grouped(refused)}.{" "}
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
      <ul>
        {remarks.map((remark) => (
          <li>
            <bdi>{remark}</bdi>
          </li>
        ))}
      </ul>
    </section>
  );
}
