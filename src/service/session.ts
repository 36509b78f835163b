import type { Config } from "../config/config.ts";
import { createEventLog } from "../log/event-log.ts";
import { makeId, sleep } from "../platform/clock.ts";
import { openLog } from "../privacy/open-log.ts";
import { createEraseHandler } from "../privacy/retention.ts";
import { startProjector } from "../projector/projector.ts";
import { createFindLinkKeys } from "../recipients/record-consent.ts";
import { createSuppressionHashes } from "../recipients/suppress.ts";

/** A log, what belongs to it, and its projections, for work while a service may run. */
export type Session = Awaited<ReturnType<typeof openSessionWith>>;

/** Opens the configured log, or creates a missing one. Disposing the session closes it. */
export async function openSessionWith(config: Config) {
  await using opening = new AsyncDisposableStack();
  const encryptedLog = opening.use(await openLog(config));
  const { keyring, vault, logClock } = encryptedLog;
  const hashesOf = createSuppressionHashes(await vault.stableKey("suppression"));
  const erase = createEraseHandler(keyring);
  const projector = opening.use(await startProjector(encryptedLog, { erase, saves: () => false }));
  const eventLog = createEventLog(encryptedLog, makeId);
  const opened = opening.move();
  return {
    config,
    encryptedLog,
    logClock,
    eventLog,
    keyring,
    vault,
    hashesOf,
    findLinkKeys: createFindLinkKeys(keyring),
    projector,
    sleep,
    random: Math.random,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
