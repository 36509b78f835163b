/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";

interface SheetProps<Head extends string> {
  readonly label: string;
  readonly head: readonly Head[];
  readonly rows: readonly {
    readonly id: string;
    readonly cells: Readonly<Record<Head, ComponentChildren>>;
  }[];
}

/** A table whose rows become lists on narrow screens, with the column's head above each cell. */
export function Sheet<Head extends string>({ label, head, rows }: SheetProps<Head>): VNode {
  return (
    <div class="sheet">
      <table aria-label={label}>
        <thead>
          <tr>
            {head.map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, cells }) => (
            <tr id={id}>
              {head.map((name) => (
                <td data-head={name}>{cells[name]}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
