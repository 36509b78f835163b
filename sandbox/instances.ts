/** Services beside the sandbox. The program that started both lets the sandbox's pages kill and start them. */
export interface Instances {
  list(): readonly { readonly url: string; readonly isRunning: boolean }[];
  /** Without effect for one that has ended, or that there is not. */
  kill(url: string): void;
  /** Without effect for one that runs, or that there is not. */
  start(url: string): void;
}
