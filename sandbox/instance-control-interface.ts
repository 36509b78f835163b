/**
 * Service instances next to the sandbox. The program that started both lets the sandbox's pages kill and restart them.
 */
export interface Instances {
  list(): readonly { readonly url: string; readonly isRunning: boolean }[];
  /** Kills the instance. Does nothing if it has ended or does not exist. */
  kill(url: string): void;
  /** Restarts the instance. Does nothing if it is running or does not exist. */
  start(url: string): void;
}
