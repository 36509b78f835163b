import { Option, usageError } from "./command.ts";

/** The only import of the sandbox, made when it is wanted, so that a production install needs none of its libraries. */
export async function loadSandbox() {
  try {
    const [{ startSandbox }, settings] = await Promise.all([
      import("../sandbox/sandbox.ts"),
      import("../sandbox/settings.ts"),
    ]);
    return { startSandbox, settingsOf: settings.settingsOf };
  } catch (fault) {
    if ((fault as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw fault;
    throw usageError("the sandbox needs the development dependencies: run bun install without --production");
  }
}

/** A PostgreSQL server of the demo's own, gone with this process. */
export async function startDatabaseServer() {
  try {
    const { startPostgres } = await import("eventstore-lite/testing/postgres-server");
    return await startPostgres();
  } catch (fault) {
    const { code } = fault as { code?: unknown };
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw fault;
    throw usageError(
      "several instances need PostgreSQL, which a clone of the project has: run bun install without --production",
    );
  }
}

/** Which of the chat and messaging networks the settings are for. */
export const chatOption = () =>
  new Option("--chat <name>", "the chat network that the settings are for")
    .choices(["slack", "discord", "google_chat", "teams"] as const)
    .default("slack" as const);

export const messagingOption = () =>
  new Option("--messaging <name>", "the messaging network that the settings are for")
    .choices(["telegram", "line", "whatsapp"] as const)
    .default("telegram" as const);

/** The networks chosen by {@link chatOption} and {@link messagingOption}. */
export interface Choice {
  readonly chat: "slack" | "discord" | "google_chat" | "teams";
  readonly messaging: "telegram" | "line" | "whatsapp";
}

/** A port to listen on. Throws a ServiceError (usage). */
export function portOf(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw usageError("a port is a number to 65535");
  return port;
}
