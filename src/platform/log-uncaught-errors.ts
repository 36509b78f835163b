import { createLogger, errorFields } from "./logger.ts";

/**
 * Logs each error that no code has caught as one line, and the process continues: one request or timer is no reason to
 * drop all others, and all that must be right is in the event log's transactions. Returns the function that logs.
 */
export function handleUncaughtErrors(write: (line: string) => void) {
  const logger = createLogger("error", write, Date.now);
  // The runtime would also print the members and the cause of a fault, which may hold a request with its credentials.
  const report = (fault: unknown): void => logger.error("uncaught error", errorFields(fault));
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
  return report;
}
