/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { grouped } from "../../platform/counts-and-lists.ts";
import { listHref, type Order, readPlace, type Sort, type SortPlace } from "../sorted-page.ts";
import type { View } from "../page-context.ts";

/** `number`: aligned as numbers are; `breakable`: its cells hold long words, which break where there is no room. */
type Kind = "number" | "breakable";

/** What stands above a column. */
export type Column = string | ColumnHead;

interface ColumnHead {
  readonly head: string;
  readonly kind?: Kind | undefined;
  /** A link to the list sorted by this column; `order`: in which the rows are by it now. */
  readonly sort?: { readonly order: Order | undefined; readonly href: string };
}

export const numbers = (...heads: readonly string[]): readonly Column[] =>
  heads.map((head) => ({ head, kind: "number" }));

export const breakable = (...heads: readonly string[]): readonly Column[] =>
  heads.map((head) => ({ head, kind: "breakable" }));

/** Makes the heads of a sorted list: each is a link to the list sorted by its column, `first` in this order. */
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
  /** What the list is of. */
  readonly rows: string;
  readonly next: SortPlace | undefined;
}

/** The ways to the first page of a sorted list and to the next one. */
export function ListPages({ view, path, rows, next }: ListPagesProps): VNode {
  return (
    <p>
      {readPlace(view) === undefined ? null : <a href={listHref(view, path, {})}>First {rows}</a>}{" "}
      {next === undefined ? null : (
        <a href={listHref(view, path, { after: next.key, value: next.value || undefined })}>More {rows}</a>
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

/** Says how many a list would have; renders nothing where it shows all. */
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

/** What is known of one thing, each under its name. */
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

/** Numbers are grouped, and what there is none of is a dash. */
export type Cell = VNode | string | number | null | undefined;

interface TableProps {
  /** Of the region that scrolls by itself where the table is wider than the screen. */
  readonly label: string;
  readonly columns: readonly Column[];
  /** The last cell of a row that is shorter than the head spans the rest of it. */
  readonly rows: readonly (readonly Cell[])[];
  /** Which column says what a row is of. Default: the first one; null: none does. */
  readonly rowHead?: number | null;
  /** Longer than the screen: it scrolls in itself. */
  readonly isTall?: boolean;
}

/** On a phone each row is a list of labelled values. The roles keep it a table, however it is laid out. */
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
                {sort === undefined ? head : <a href={sort.href}>{head}</a>}
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
