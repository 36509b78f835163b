/** Positions `first` to `last`, both inclusive. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

export interface Fault {
  readonly position: number;
  readonly reason: string;
}
