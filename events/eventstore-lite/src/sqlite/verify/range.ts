import type { Sums } from "./sums.ts";

/** Positions `first` to `last`, both inclusive. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

export interface Fault {
  readonly position: number;
  readonly reason: string;
}

/** The result of checking a range. */
export interface Checked {
  /** The first event that does not fit; all events before it were found good. */
  readonly fault: Fault | undefined;
  /** Sums over the events that were found good. */
  readonly sums: Sums;
}

/** The result of checking the log. */
export interface Findings {
  /** The first event that does not fit; all events before it were found good. */
  readonly event: Fault | undefined;
  /**
   * An event that readers do not find. It is looked for while the events are checked, so it counts only if all of them
   * are good.
   */
  readonly index: Fault | undefined;
}
