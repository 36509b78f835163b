import { usageError } from "../../platform/service-error.ts";

/** The only import of the sandbox. It is loaded on demand, so that a production install needs none of its libraries. */
export async function loadSandbox() {
  const [{ startSandbox }, settings] = await inDevelopment(
    () => Promise.all([import("@reachlog/sandbox"), import("@reachlog/sandbox/settings")]),
    "the sandbox needs the development dependencies: run bun install without --production",
  );
  return { startSandbox, settingsOf: settings.settingsOf, settingsAt: settings.settingsAt };
}

/** Starts a PostgreSQL server for the demo, which ends with this process. */
export function startDatabaseServer() {
  return inDevelopment(
    async () => (await import("eventstore-lite/testing/postgres-server")).startPostgres({ durable: true }),
    "several instances need PostgreSQL, which a clone of the project has: run bun install without --production",
  );
}

/** Throws a ServiceError (usage) with `missing` if a module is not installed. */
async function inDevelopment<Result>(load: () => Promise<Result>, missing: string): Promise<Result> {
  try {
    return await load();
  } catch (fault) {
    const { code } = fault as { code?: unknown };
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw fault;
    throw usageError(missing);
  }
}
