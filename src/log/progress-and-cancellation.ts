/** Lets long work report its progress, and ask if it must stop. */
export interface WorkMonitor {
  /**
   * Runs a step of the work and shows its progress. `what` describes the step; `work` reports by `onProgress`, up to
   * `total`.
   */
  showProgress<Result>(
    what: string,
    total: number,
    work: (onProgress: (done: number) => void) => Promise<Result>,
  ): Promise<Result>;
  /** Reports a failure that does not end the work. */
  warn(sentence: string): void;
  /**
   * Returns true once the operator has interrupted the work. After the first call, an interruption no longer ends the
   * process at once, so the work must then end by itself.
   */
  isInterrupted(): boolean;
}
