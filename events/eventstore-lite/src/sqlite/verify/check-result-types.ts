import type { Sums } from "./index-sums.ts";

/** Positions `first` to `last`, both inclusive. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

export interface Fault {
  readonly position: number;
  readonly reason: string;
}

/** Result of checking a range of a log. */
export interface Checked {
  /** First event of the range that does not fit; all events before it were found good. */
  readonly fault: Fault | undefined;
  /** Sums over the events of the range that were found good. */
  readonly sums: Sums;
}

/** Result of checking a whole log. */
export interface Findings {
  /** First event of the log that does not fit; all events before it were found good. */
  readonly event: Fault | undefined;
  /**
   * Event that readers do not find by an index. It is searched for while the events are checked. If one of the events
   * has a fault, that fault is reported instead.
   */
  readonly index: Fault | undefined;
}
