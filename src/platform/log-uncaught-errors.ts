import { createLogger, errorFields } from "./logger.ts";

/**
 * Logs an uncaught fault as one line and lets the process go on. A fault of one request or timer is no reason to drop all
 * others, and nothing that has to be right is kept outside of the log's transactions.
 * The runtime itself would print the fault's own members and its cause, which may hold a request with its credentials.
 */
export function handleUncaughtErrors(write: (line: string) => void) {
  const logger = createLogger("error", write, Date.now);
  const report = (fault: unknown): void => logger.error("uncaught error", errorFields(fault));
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
  return report;
}
