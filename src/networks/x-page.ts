import type { Page } from "./network.ts";

/** What an answer has around its entries, with those of X's errors that stand beside them. */
export const FRAME_BYTES = 64 * 1024;

/** What `max_results` may be. */
export interface PageSize {
  readonly least: number;
  readonly most: number;
}

/** How many entries are asked for, from where on. */
export interface Wanted {
  readonly size: number;
  readonly cursor: string | undefined;
}

export function sized({ limit, cursor }: Page, { least, most }: PageSize): Wanted {
  return { size: Math.min(most, Math.max(least, Math.trunc(limit))), cursor };
}

/** The values that are there, as a query wants them. */
export function optional(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const all = Object.entries(values);
  return Object.fromEntries(all.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
