import { UsageError } from "./command.ts";

/** The one door to the sandbox: loaded when it is wanted, so that a production install needs none of its libraries. */
export async function loadSandbox() {
  try {
    const [{ startSandbox }, { settingsOf }] = await Promise.all([
      import("../sandbox/sandbox.ts"),
      import("../sandbox/settings.ts"),
    ]);
    return { startSandbox, settingsOf };
  } catch (fault) {
    if ((fault as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw fault;
    throw new UsageError("the sandbox needs the development dependencies: run bun install without --production");
  }
}
