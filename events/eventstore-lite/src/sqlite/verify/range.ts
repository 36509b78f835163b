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

/** What a check of a range came to. */
export interface Checked {
  /** The first event that does not fit; whatever lies before it was found good. */
  readonly fault: Fault | undefined;
  /** Of the events that were found good. */
  readonly sums: Sums;
}

/** What a check of the log found. */
export interface Findings {
  /** The first event that does not fit; whatever lies before it was found good. */
  readonly event: Fault | undefined;
  /** An event that readers do not find. Looked for beside the events, so it counts only when all of those are good. */
  readonly index: Fault | undefined;
}
