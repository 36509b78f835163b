export type Order = "ascending" | "descending";

/** Column that a list is sorted by, and the direction. */
export interface Sort<Name extends string> {
  readonly by: Name;
  readonly order: Order;
}

/** The place of a row in a sorted list. A page begins after a place, whether or not its row still exists. */
export interface SortPlace {
  /** The row's value in the sorted column. A row with an empty value comes last in either order. */
  readonly value: string;
  /**
   * Key of the row. It distinguishes rows with equal values in the sorted column, so that a page can begin after one of
   * them.
   */
  readonly key: string;
}

/** Description of one page of a sorted list. */
export interface ListPage<Name extends string> {
  readonly sort: Sort<Name>;
  /** Place after which the page begins; undefined to begin with the first row. */
  readonly after: SortPlace | undefined;
  readonly limit: number;
}

/**
 * Number of digits to which numbers are padded, so that their texts sort like the numbers. The largest number in a list
 * has that many.
 */
const DIGITS = 16;

/**
 * Maximum number of rows that {@link createSortedPage} holds before it drops those that are not on the page. So a long
 * list takes little memory, and sorting is rare.
 */
const KEPT_MAX = 4_096;

/** Formats a number that is not negative as a text that sorts like the number. */
export function toSortValue(number: number): string {
  return String(number).padStart(DIGITS, "0");
}

/** Creates one page of a list whose rows come in any order: keeps the first `limit` rows after the place `after`. */
export function createSortedPage({ sort: { order }, after, limit }: ListPage<string>) {
  const sign = order === "ascending" ? 1 : -1;
  const compare = (one: SortPlace, other: SortPlace): number => {
    if (one.value === other.value) return one.key < other.key ? -1 : Number(one.key > other.key);
    if (one.value === "" || other.value === "") return one.value === "" ? 1 : -1;
    return one.value < other.value ? -sign : sign;
  };
  const kept: SortPlace[] = [];
  /** Place after which no row can be on the page. Undefined until rows were dropped for the first time. */
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
    /** Returns the page's rows by key. `next` is the place of the last one; undefined if no rows follow. */
    end(): { readonly keys: readonly string[]; readonly next: SortPlace | undefined } {
      cut();
      const page = kept.slice(0, limit);
      return { keys: page.map(({ key }) => key), next: kept.length > limit ? page.at(-1) : undefined };
    },
  };
}

/** Sorts the rows of a list that is shown whole. Rows of the same value keep their order. */
export function sortRows<Row>(
  rows: readonly Row[],
  valueIn: (row: Row) => string | number | null | undefined,
  sort: Sort<string>,
): readonly Row[] {
  const sorted = createSortedPage({ sort, after: undefined, limit: rows.length });
  for (const [at, row] of rows.entries()) {
    const value = valueIn(row) ?? "";
    sorted.add(typeof value === "number" ? toSortValue(value) : value, toSortValue(at));
  }
  return sorted.end().keys.flatMap((key) => rows[Number(key)] ?? []);
}
