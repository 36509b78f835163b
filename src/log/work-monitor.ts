/** Where long work says how far it is, and asks whether it must stop. */
export interface WorkMonitor {
  /** Runs a step of the work: `what` it does, and the `total` that `onProgress` counts up to. */
  showProgress<Result>(
    what: string,
    total: number,
    work: (onProgress: (done: number) => void) => Promise<Result>,
  ): Promise<Result>;
  /** A sentence about a failure that does not end the work. */
  warn(sentence: string): void;
  /** From the first question on, the work has to end in order once it is interrupted. */
  isInterrupted(): boolean;
}
