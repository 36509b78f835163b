import { addressWith } from "./hrefs.ts";
import { readChoice, type View } from "./page-context.ts";

const ORDERS = ["ascending", "descending"] as const;
export type Order = (typeof ORDERS)[number];

/** The column that a list is sorted by, as the page's address names it. */
export interface Sort<Name extends string> {
  readonly by: Name;
  readonly order: Order;
}

/** The place of a row in a sorted list. A page begins after a place, whether or not its row still exists. */
export interface SortPlace {
  /** The value that the row is sorted by. If it is empty, the row comes last in either order. */
  readonly value: string;
  /** The key of the row, so that no two places are equal. */
  readonly key: string;
}

/** Digits of the largest number that a list is sorted by. */
const DIGITS = 16;

/** Rows kept between two cuts of {@link createSortedPage}: few cuts, and little memory. */
const KEPT_MAX = 4_096;

/** The sort in the page's address, else `fallback`. */
export function readSort<Name extends string>(view: View, names: readonly Name[], fallback: Sort<Name>): Sort<Name> {
  const by = readChoice(view, "sort", names);
  return by === undefined ? fallback : { by, order: readChoice(view, "order", ORDERS) ?? "ascending" };
}

/** The place in the page's address. Undefined if the list is shown from its beginning. */
export function readPlace({ query }: View): SortPlace | undefined {
  const key = query.get("after") ?? "";
  return key === "" ? undefined : { key, value: query.get("value") ?? "" };
}

/** Formats a number that is not negative as a value to sort by. */
export function toSortValue(number: number): string {
  return String(number).padStart(DIGITS, "0");
}

/** The list's address with these changes to the query of the page, from the list's beginning on. */
export function listHref({ query }: View, path: string, changes: Parameters<typeof addressWith>[2]): string {
  return addressWith(path, query, { after: undefined, value: undefined, ...changes });
}

/** Takes the rows of a list in any order, and keeps the `limit` that follow `after`. */
export function createSortedPage(order: Order, after: SortPlace | undefined, limit: number) {
  const sign = order === "ascending" ? 1 : -1;
  const compare = (one: SortPlace, other: SortPlace): number => {
    if (one.value === other.value) return one.key < other.key ? -1 : Number(one.key > other.key);
    if (one.value === "" || other.value === "") return one.value === "" ? 1 : -1;
    return one.value < other.value ? -sign : sign;
  };
  const kept: SortPlace[] = [];
  /** Rows after this place are not on the page. */
  let last: SortPlace | undefined;
  const cut = (): void => {
    kept.sort(compare).splice(limit + 1);
    last = kept[limit];
  };
  return {
    add(value: string, key: string): void {
      const place = { value, key };
      if (after !== undefined && compare(place, after) <= 0) return;
      if (last !== undefined && compare(place, last) > 0) return;
      if (kept.push(place) === KEPT_MAX) cut();
    },
    /** `next` is the last place of the page. Undefined if no rows follow. */
    end(): { readonly keys: readonly string[]; readonly next: SortPlace | undefined } {
      cut();
      const page = kept.slice(0, limit);
      return { keys: page.map(({ key }) => key), next: kept.length > limit ? page.at(-1) : undefined };
    },
  };
}

/** Sorts the rows of a list that is shown whole. Rows of the same value stay in their order. */
export function sortRows<Row>(
  rows: readonly Row[],
  valueIn: (row: Row) => string | number | null | undefined,
  { order }: Sort<string>,
): readonly Row[] {
  const sorted = createSortedPage(order, undefined, rows.length);
  for (const [at, row] of rows.entries()) {
    const value = valueIn(row) ?? "";
    sorted.add(typeof value === "number" ? toSortValue(value) : value, toSortValue(at));
  }
  return sorted.end().keys.flatMap((key) => rows[Number(key)] ?? []);
}
