import { createLogger, errorFields } from "./logger.ts";

/** Logs a fault that nobody caught: what it says and where it came from. */
export type ReportError = (fault: unknown) => void;

/**
 * Catches what nobody else does, logs it as one line, and lets the process go on: what one request or timer
 * did wrong is no reason to drop all others, and nothing that has to be right is kept outside of the log's transactions.
 * The runtime itself would print the fault's own members and its cause, which may hold a request with its credentials.
 */
export function handleUncaughtErrors(write: (line: string) => void): ReportError {
  const logger = createLogger("error", write, Date.now);
  const report: ReportError = (fault) => logger.error("a fault that nobody expected", errorFields(fault));
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
  return report;
}
