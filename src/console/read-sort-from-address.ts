// This file reads from a page's address how to sort a list and where it begins; src/platform/sorted-page.ts sorts the
// rows.
import type { ListPage, Order, Sort, SortPlace } from "../platform/sorted-page.ts";
import { addressWith } from "./hrefs.ts";
import { readChoice, type View } from "./page-context.ts";

const ORDERS: readonly Order[] = ["ascending", "descending"];

/** Returns the sort order of a list from the page's address, or `fallback` without one. */
export function readSort<Name extends string>(view: View, names: readonly Name[], fallback: Sort<Name>): Sort<Name> {
  const by = readChoice(view, "sort", names);
  return by === undefined ? fallback : { by, order: readChoice(view, "order", ORDERS) ?? "ascending" };
}

/**
 * Returns the row after which a list continues, from the page's address. Undefined if the list is shown from its
 * beginning.
 */
export function readPlace({ query }: View): SortPlace | undefined {
  const key = query.get("after") ?? "";
  return key === "" ? undefined : { key, value: query.get("value") ?? "" };
}

/** Returns which page of a sorted list to show, from the page's address: sort order, start and length. */
export function readListPage<Name extends string>(view: View, sort: Sort<Name>, limit: number): ListPage<Name> {
  return { sort, after: readPlace(view), limit };
}

/**
 * Returns the address of a list with these changes to the parameters of the present page, beginning with the list's
 * first row.
 */
export function listHref({ query }: View, path: string, changes: Parameters<typeof addressWith>[2]): string {
  return addressWith(path, query, { after: undefined, value: undefined, ...changes });
}
