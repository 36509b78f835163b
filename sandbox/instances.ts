/** Services beside the sandbox, which whoever started both lets its pages kill and start. */
export interface Instances {
  list(): readonly { readonly url: string; readonly isRunning: boolean }[];
  /** Without effect for one that has ended, or that there is not. */
  kill(url: string): void;
  /** Without effect for one that runs, or that there is not. */
  start(url: string): void;
}
