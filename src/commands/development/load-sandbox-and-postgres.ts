import { usageError } from "../../platform/service-error.ts";

/**
 * Loads the sandbox, which has local stand-ins for the networks. It is imported only here and on demand, so that a
 * production installation does not need its libraries.
 */
export async function loadSandbox() {
  const [{ startSandbox }, { runDemo }, { settingsAt, settingsOf }] = await inDevelopment(
    () =>
      Promise.all([
        import("@reachlog/sandbox"),
        import("@reachlog/sandbox/demo"),
        import("@reachlog/sandbox/settings"),
      ]),
    "the sandbox needs the development dependencies: run bun install without --production",
  );
  return { startSandbox, runDemo, settingsAt, settingsOf };
}

/** Starts a PostgreSQL server for the demo, which ends with this process. */
export function startDatabaseServer() {
  return inDevelopment(
    async () => (await import("eventstore-lite/testing")).startPostgres({ durable: true }),
    "several instances need PostgreSQL, which a clone of the project has: run bun install without --production",
  );
}

/**
 * Imports a development module by calling `load`. Throws a ServiceError (usage) with the message `missing` if the
 * module is not installed.
 */
async function inDevelopment<Result>(load: () => Promise<Result>, missing: string): Promise<Result> {
  try {
    return await load();
  } catch (fault) {
    const { code } = fault as { code?: unknown };
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw fault;
    throw usageError(missing);
  }
}
