/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { grouped } from "../../platform/counts-and-lists.ts";
import { listHref, type Order, readPlace, type Sort, type SortPlace } from "../sorted-page.ts";
import type { View } from "../page-context.ts";
import { A } from "./link.tsx";

/** `number` cells are aligned as numbers. `breakable` cells hold long words, which break if there is no room. */
type Kind = "number" | "breakable";

/** The head of a column. */
export type Column = string | ColumnHead;

interface ColumnHead {
  readonly head: string;
  readonly kind?: Kind | undefined;
  /** A link to the list sorted by this column. `order` is undefined unless the rows are sorted by it now. */
  readonly sort?: { readonly order: Order | undefined; readonly href: string };
}

export const numbers = (...heads: readonly string[]): readonly Column[] =>
  heads.map((head) => ({ head, kind: "number" }));

export const breakable = (...heads: readonly string[]): readonly Column[] =>
  heads.map((head) => ({ head, kind: "breakable" }));

/**
 * Makes the heads of a sorted list. Each links to the list sorted by its column in the order `first`, or reversed if it
 * is sorted by that column now.
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
  readonly view: View;
  readonly path: `/${string}`;
  /** The name of the rows in the plural. */
  readonly rows: string;
  readonly next: SortPlace | undefined;
}

/** Links to the first page of a sorted list, and to the next one. */
export function ListPages({ view, path, rows, next }: ListPagesProps): VNode {
  return (
    <p>
      {readPlace(view) === undefined ? null : <A href={listHref(view, path, {})}>First {rows}</A>}{" "}
      {next === undefined ? null : (
        <A href={listHref(view, path, { after: next.key, value: next.value || undefined })}>More {rows}</A>
      )}
    </p>
  );
}

interface OnlyFirstProps {
  readonly shown: number;
  readonly count: number;
  /** How to get the others. */
  readonly children?: ComponentChildren;
}

/** Says how many rows there are in all. Renders nothing if all of them are shown. */
export function OnlyFirst({ shown, count, children = "." }: OnlyFirstProps): VNode | null {
  if (count <= shown) return null;
  return (
    <p>
      The first {grouped(shown)} of {grouped(count)}
      {children}
    </p>
  );
}

export type NamedValue = readonly [name: string, value: ComponentChildren];

/** The facts about one thing, each with its name. */
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
  /** The name of the region, which scrolls by itself if the table is wider than the screen. */
  readonly label: string;
  readonly columns: readonly Column[];
  /** The last cell of a row that is shorter than the head spans the rest of it. */
  readonly rows: readonly (readonly Cell[])[];
  /** The index of the column that names the row. Default: the first one; null if none does. */
  readonly rowHead?: number | null;
  /** True if the table has its full height, instead of scrolling by itself. */
  readonly isTall?: boolean;
}

/** On a phone each row is a list of labelled values. The roles keep it a table for screen readers. */
export function Table({ label, columns, rows, rowHead = 0, isTall = false }: TableProps): VNode {
  const heads = columns.map((column): ColumnHead => (typeof column === "string" ? { head: column } : column));
  const toCell = (cell: Cell, at: number, { length }: readonly Cell[]): VNode => {
    const { head, kind } = heads[at]!;
    const span = at === length - 1 ? heads.length - at : 1;
    const attributes = {
      class: span === 1 ? kind : undefined,
      role: at === rowHead ? "rowheader" : "cell",
      "data-label": head.charAt(0).toUpperCase() + head.slice(1),
    } as const;
    const shown = typeof cell === "number" ? grouped(cell) : (cell ?? "–");
    return at === rowHead ? (
      <th scope="row" {...attributes}>
        {shown}
      </th>
    ) : (
      <td colSpan={span === 1 ? undefined : span} {...attributes}>
        {shown}
      </td>
    );
  };
  return (
    <div class={isTall ? "scroll tall" : "scroll"} tabIndex={0} role="region" aria-label={label}>
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {heads.map(({ head, kind, sort }) => (
              <th scope="col" role="columnheader" class={kind} aria-sort={sort?.order}>
                {sort === undefined ? head : <A href={sort.href}>{head}</A>}
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
