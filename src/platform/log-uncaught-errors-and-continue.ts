import { createLogger, errorFields } from "./logger.ts";

/**
 * Logs each uncaught error as one line, and lets the process continue, because a failed request or timer is no reason
 * to drop all others. The log's transactions keep the data consistent. Returns the function that logs.
 */
export function handleUncaughtErrors(write: (line: string) => void) {
  const logger = createLogger("error", write, Date.now);
  // The runtime would also print the members and the cause of a fault, which may hold a request with its credentials.
  const report = (fault: unknown): void => logger.error("uncaught error", errorFields(fault));
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
  return report;
}
