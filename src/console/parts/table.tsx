/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { grouped } from "../document.tsx";

/** What stands above a column; `number`: aligned as numbers are. */
export type Column = string | ColumnHead;

interface ColumnHead {
  readonly head: string;
  readonly kind?: "number" | undefined;
  /** A link to the list sorted by this column; `order`: in which the rows are by it now. */
  readonly sort?: { readonly order: "ascending" | "descending" | undefined; readonly href: string };
}

export const numbers = (...heads: readonly string[]): readonly Column[] =>
  heads.map((head) => ({ head, kind: "number" }));

interface TableProps {
  /** Of the region that scrolls by itself where the table is wider than the screen. */
  readonly label: string;
  readonly columns: readonly Column[];
  /** Longer than the screen: it scrolls in itself. */
  readonly isTall?: boolean;
  /** On a phone each row is a list. */
  readonly isStacked?: boolean;
  readonly children: ComponentChildren;
}

export function NumberCells({ of }: { readonly of: readonly number[] }): VNode {
  return (
    <>
      {of.map((number) => (
        <td class="number">{grouped(number)}</td>
      ))}
    </>
  );
}

export function Table({ label, columns, isTall = false, isStacked = false, children }: TableProps): VNode {
  return (
    <div class={isTall ? "scroll tall" : "scroll"} tabIndex={0} role="region" aria-label={label}>
      <table class={isStacked ? "stacked" : undefined}>
        <thead>
          <tr>
            {columns.map((column) => {
              const { head, kind, sort }: ColumnHead = typeof column === "string" ? { head: column } : column;
              return (
                <th scope="col" class={kind} aria-sort={sort?.order}>
                  {sort === undefined ? head : <a href={sort.href}>{head}</a>}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
