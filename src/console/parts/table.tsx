/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { grouped } from "../../platform/format-numbers-and-lists.ts";
import type { Order, Sort, SortPlace } from "../../platform/sorted-page.ts";
import { listHref, readPlace } from "../read-sort-from-address.ts";
import { useView, type View } from "../page-context.ts";
import { A } from "./links-forms-and-tabs.tsx";

/**
 * Kind of a column's cells: right-aligned numbers, texts that may break within words, or a state such as a badge, which
 * a narrow table shows next to the row's name.
 */
type Kind = "number" | "breakable" | "state";

/** The head of a column. */
export type Column = string | ColumnHead;

interface ColumnHead {
  readonly head: string;
  readonly kind?: Kind | undefined;
  /** Link that sorts the list by this column. `order` is undefined unless the list is sorted by it now. */
  readonly sort?: { readonly order: Order | undefined; readonly href: string };
}

export const numbers = (...heads: readonly string[]): readonly Column[] =>
  heads.map((head) => ({ head, kind: "number" }));

export const breakable = (...heads: readonly string[]): readonly Column[] =>
  heads.map((head) => ({ head, kind: "breakable" }));

/**
 * Makes the column heads of a sorted list. Each links to the list sorted by its column, first in the order `first`,
 * then reversed.
 */
export function createSortedHeads<Name extends string>(view: View, path: `/${string}`, sort: Sort<Name>) {
  return (head: string, name: Name, first: Order, kind?: Kind): Column => {
    const isSorted = sort.by === name;
    const order = isSorted ? (sort.order === "ascending" ? "descending" : "ascending") : first;
    const href = listHref(view, path, { sort: name, order });
    return { head, kind, sort: { order: isSorted ? sort.order : undefined, href } };
  };
}

interface ListPagesProps {
  readonly path: `/${string}`;
  /** Plural noun for the rows of the list. */
  readonly rows: string;
  readonly next: SortPlace | undefined;
}

/** Links to the first page of a sorted list, and to the next one. */
export function ListPages({ path, rows, next }: ListPagesProps): VNode {
  const view = useView();
  return (
    <p>
      {readPlace(view) === undefined ? null : <A href={listHref(view, path, {})}>First {rows}</A>}{" "}
      {next === undefined ? null : (
        <A href={listHref(view, path, { after: next.key, value: next.value || undefined })}>More {rows}</A>
      )}
    </p>
  );
}

/** Note that only the first rows are shown, and how many there are. Renders nothing if all are shown. */
export function OnlyFirst({ shown, count }: { readonly shown: number; readonly count: number }): VNode | null {
  if (count <= shown) return null;
  return (
    <p>
      The first {grouped(shown)} of {grouped(count)}.
    </p>
  );
}

export type NamedValue = readonly [name: string, value: ComponentChildren];

/** Facts about one thing, each with its name. */
export function NamedValues({ of }: { readonly of: readonly NamedValue[] }): VNode {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div>
          <dt>
            <bdi>{name}</bdi>
          </dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The content of a cell. Digits of numbers are grouped, and an absent value is shown as a dash. */
export type Cell = VNode | string | number | null | undefined;

interface TableProps {
  /** Name of the table's region, which scrolls by itself if the table is wider than the screen. */
  readonly label: string;
  readonly columns: readonly Column[];
  /** Cells of each row. The last cell of a row that is shorter than the head spans the rest of it. */
  readonly rows: readonly (readonly Cell[])[];
  /** Index of the column that names each row. Default: the first one; null if none does. */
  readonly rowHead?: number | null;
  /**
   * True if the table has its full height and does not scroll by itself. On a narrow screen, a row whose name is a link
   * then shows at most two lines of values, because the linked page shows all.
   */
  readonly isTall?: boolean;
  /** Words in place of a table without rows. */
  readonly empty?: string;
}

/**
 * Table that, where it is narrow, turns each row into two lines: the name with the state, and all other values. ARIA
 * roles keep it a table for screen readers.
 */
export function Table({ label, columns, rows, rowHead = 0, isTall = false, empty }: TableProps): VNode {
  if (rows.length === 0 && empty !== undefined) return <p class="empty">{empty}</p>;
  const heads = columns.map((column): ColumnHead => (typeof column === "string" ? { head: column } : column));
  const toCell = (cell: Cell, at: number, { length }: readonly Cell[]): VNode => {
    const { head, kind } = heads[at]!;
    const span = at === length - 1 ? heads.length - at : 1;
    const attributes = {
      class: span === 1 ? kind : undefined,
      colSpan: span === 1 ? undefined : span,
      role: at === rowHead ? "rowheader" : "cell",
      "data-unit": kind === "number" && cell != null ? head : undefined,
      "data-blank": cell == null || cell === "" ? "" : undefined,
    } as const;
    const shown = cell === 0 ? <span class="quiet">0</span> : typeof cell === "number" ? grouped(cell) : (cell ?? "–");
    return at === rowHead ? (
      <th scope="row" {...attributes}>
        {shown}
      </th>
    ) : (
      <td {...attributes}>{shown}</td>
    );
  };
  return (
    <div class={isTall ? "scroll tall" : "scroll"} tabIndex={0} role="region" aria-label={label}>
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {heads.map(({ head, kind, sort }) => (
              <th scope="col" role="columnheader" class={kind} aria-sort={sort?.order}>
                {sort === undefined ? (
                  head
                ) : (
                  <A href={sort.href} data-apply>
                    {head}
                  </A>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((cells) => (
            <tr role="row">{cells.map(toCell)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A list of sentences, each with texts from outside. */
export function Sentences({ of }: { readonly of: readonly string[] }): VNode {
  return (
    <ul>
      {of.map((sentence) => (
        <li>
          <bdi>{sentence}</bdi>
        </li>
      ))}
    </ul>
  );
}

interface NumberTableProps {
  readonly heads: readonly string[];
  /** Name of each row, and its numbers. */
  readonly rows: readonly (readonly [name: VNode, ...numbers: readonly number[]])[];
}

/** Table of numbers that stays a table where it is narrow, and so needs a fifth of the markup of a `Table`. */
export function NumberTable({ heads, rows }: NumberTableProps): VNode {
  return (
    <table class="tally">
      <thead>
        <tr>
          {heads.map((head) => (
            <th scope="col">{head}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, ...numbers]) => (
          <tr>
            <th scope="row">{name}</th>
            {numbers.map((number) => (
              <td>{grouped(number)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
