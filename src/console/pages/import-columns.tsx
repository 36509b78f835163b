/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { ImportPreview } from "../../recipients/recipients.operations.ts";
import { Icon } from "../parts/icon-and-badge.tsx";

/** Rows of an imported file that could not be used. Their values are texts from outside. */
export interface RefusedRows {
  readonly refused: number;
  readonly refused_rows: readonly { readonly line: number; readonly value: string; readonly reason: string }[];
}

/** Preview of an import, as the API answers it, with the operator's choices and the hidden fields of its form. */
export interface Preview extends ImportPreview, RefusedRows {
  /** Names of the columns that reachlog knows. A column of the file can be assigned to one of them. */
  readonly known: readonly string[];
  /** Template fields that the message uses. */
  readonly fields: readonly string[];
  readonly duplicates: number;
  readonly notes: readonly string[];
  /** True if the operator has chosen in which order the dates of the file give day, month and year. */
  readonly isDated: boolean;
  /** Consent that the operator states for all rows that do not say it; empty if they state none. */
  readonly stated: { readonly basis: string; readonly source: string };
  /** Hidden fields with which the page keeps the file for the next form. `kept` is absent if the file is too large. */
  readonly kept: { readonly kept_name: string; readonly kept?: string; readonly kept_sha256: string };
  /** Refused lines as CSV, as many as fit in a page. */
  readonly refusedCsv: { readonly text: string; readonly lines: number };
}

/** Words by which the page names the columns that reachlog knows. */
const COLUMN_WORDS: Readonly<Record<string, string>> = {
  username: "handle",
  id: "id at X",
  timezone: "time zone",
  basis: "basis of consent",
  consent_at: "date of consent",
  consent_source: "source of consent",
  consent_text: "wording of consent",
  consent_for: "campaign or topic of consent",
  tracking: "consent to recorded clicks",
  tracking_at: "date of consent to recorded clicks",
  tracking_source: "source of consent to recorded clicks",
  tracking_text: "wording of consent to recorded clicks",
};

export function columnInWords(column: string): string {
  return COLUMN_WORDS[column] ?? column;
}

/**
 * Shortens the reason why a line of the file was refused: a column keeps only the name that it has in the file. The
 * page shows a refused handle next to the reason, so that reason begins with "Neither" instead of a column's name.
 */
export function reasonInWords(reason: string): string {
  const short = reason.replace(/^(?:.{1,64}? \()?username\)? is neither/, "Neither");
  return short.replace(/^(.{1,64}?) \([a-z_]+\) /, "$1 ");
}

/** Shows a column of the file, what it becomes, and a question if that is unclear. Only unclear columns are amber. */
export function MappedColumn({ preview, index }: { readonly preview: Preview; readonly index: number }): VNode {
  const { name, example, column, why, is_unclear } = preview.columns[index]!;
  const { known, fields, dates, isDated } = preview;
  const isDate = column?.endsWith("_at") === true && known.includes(column) && dates !== undefined;
  const isDateUnclear = isDate && dates.example !== "" && !dates.is_proven && !isDated;
  const isUnclear = is_unclear || isDateUnclear;
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
        {[...known, ...others].map((one) => (
          <option value={`${name}=${one}`} selected={one === column}>
            {known.includes(one) ? columnInWords(one) : `field ${one}`}
          </option>
        ))}
        <option value={`${name}=`} selected={column === null}>
          do not import
        </option>
      </select>
      <Icon name={isUnclear ? "triangleAlert" : column === null ? "x" : "check"} />
      <div class="hint">
        {isUnclear ? <b>Please check. </b> : null}
        {why === "guessed" && column !== null ? "Recognised by its name: change it if it is something else. " : null}
        {is_unclear && why !== "opt_out" ? "Another column becomes the same: choose one of the two. " : null}
        {why === "opt_out" ? "Rows that say yes here are refused: import them as a suppression list. " : null}
        {why === "unused" ? "No message uses it, so it stays out of the log. " : null}
        {why !== "named" && column !== null ? YES_NO[column] : null}
        {isDate ? <DateOrder dates={dates} /> : null}
      </div>
    </li>
  );
}

const YES_NO: Readonly<Record<string, string>> = {
  basis: "“yes” counts as opted in, and “no” as no consent. ",
  tracking: "“yes” counts as granted, and “no” as denied. ",
};

/** Asks for the order of day and month, unless some date of the file makes it clear. */
function DateOrder({ dates }: { readonly dates: NonNullable<Preview["dates"]> }): VNode {
  const { example, order, is_proven: isProven } = dates;
  if (example === "" || (isProven && order !== null)) {
    const isRead = example === "" || order === null ? "" : `${example} is read as ${dayInWords(dates[order])}`;
    return (
      <>
        <input type="hidden" name="dates" value={order ?? ""} />
        {isRead === "" ? null : <bdi>{isRead}: other dates of the file fit only this order.</bdi>}
      </>
    );
  }
  return (
    <fieldset>
      <legend>
        Is <bdi>{example}</bdi> the
      </legend>
      {(["dmy", "mdy"] as const).map((one) => (
        <label>
          <input type="radio" name="dates" value={one} checked={one === order} /> {dayInWords(dates[one])}
        </label>
      ))}
    </fieldset>
  );
}

/** Writes a day with the name of its month, so that day and month cannot be confused. */
export function dayInWords(day: string): string {
  const date = new Date(`${day.slice(0, 10)}T00:00:00Z`);
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
}
