import { existsSync } from "node:fs";
import type { EventLog } from "../log/event-log.ts";
import { ServiceError } from "../platform/service-error.ts";

/**
 * A vault that is gone is made anew, and its account authorizes again. After a rotation it held more: the key of the
 * marks that suppressed people are known by, which no master key gives back. Throws KeyError.
 */
export async function refuseLostVault({ store }: EventLog, vaultFile: string): Promise<void> {
  if (existsSync(vaultFile)) return;
  for await (const { position } of store.read({ types: ["KeyRotated"], backwards: true, limit: 1 })) {
    throw new ServiceError(
      "configuration",
      `${vaultFile} is gone, and the master key was exchanged at position ${position}: without it, people who were ` +
        "suppressed and erased would not be known again. Put the file back; or, to go on without, run " +
        "reachlog serve --accept-lost-keys",
    );
  }
}
