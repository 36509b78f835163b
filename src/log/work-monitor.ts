/** Lets long work report its progress, and ask if it must stop. */
export interface WorkMonitor {
  /** Runs a step of the work. `what` describes it, and `onProgress` counts up to `total`. */
  showProgress<Result>(
    what: string,
    total: number,
    work: (onProgress: (done: number) => void) => Promise<Result>,
  ): Promise<Result>;
  /** Reports a failure that does not end the work. */
  warn(sentence: string): void;
  /** True once the work is interrupted. From the first call on, the work itself has to end in order. */
  isInterrupted(): boolean;
}
