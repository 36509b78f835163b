import { randomBytes } from "node:crypto";
import type { Config } from "../config/config.ts";
import { createEventLog, type EventMetadata, STREAMS } from "../log/event-log.ts";
import { makeId } from "../platform/clock-ids-and-timers.ts";
import { usageError } from "../platform/service-error.ts";
import { KEY_BYTES, keyId, parseKey } from "../vault/derive-keys.ts";
import { endRotation, nameOfKey, rotateKey, writeKeyFile } from "../vault/master-key.ts";
import { locateLog } from "./locate-log.ts";
import { openLog } from "./open-log.ts";

/** Returns the id of the master key in force, and where the key comes from. */
export async function identifyMasterKey(config: Config) {
  await using log = await openLog(config);
  return { id: keyId(log.master), source: nameOfKey(locateLog(config).secrets), isFormerGiven: log.isFormerGiven };
}

/**
 * Retires the former master key of a log on a server; instances that still have it keep running until they stop. False
 * if no rotation is in progress. Throws a ServiceError (usage) for a log in a file.
 */
export async function endKeyRotation(config: Config): Promise<boolean> {
  const { secrets } = locateLog(config);
  if (!secrets.isShared)
    throw usageError(
      "--end is only for a log on PostgreSQL: for a log in a file, the first start with the new key ends the rotation",
    );
  return await endRotation(secrets);
}

/**
 * Replaces the master key, and records that in the log. Opens the log as its owner, so that no service runs meanwhile,
 * and writes the former key to the new file `keep`. Resolves with the ids of both keys; throws StoreOwned and
 * ServiceErrors.
 */
export async function rotateMasterKey(config: Config, keep: string | undefined, metadata: EventMetadata) {
  await using store = await openLog(config, { owner: `reachlog key rotate, pid ${process.pid}` });
  const from = store.master;
  const to = chooseNextKey(config);
  const ids = { from: keyId(from), to: keyId(to) };
  if (ids.from === ids.to) throw usageError(`the key ${ids.to} is already in use: put it into REACHLOG_KEY`);
  if (keep !== undefined) writeKeyFile(keep, from);
  const { secrets } = locateLog(config);
  await rotateKey(secrets, store.vault, { from, to });
  const options = { key: `rotation/${ids.from}/${ids.to}` };
  await createEventLog(store, makeId).append(STREAMS.access, [{ type: "KeyRotated", data: ids }], metadata, options);
  return { ...ids, isShared: secrets.isShared };
}

function chooseNextKey({ key, nextKey: given }: Config): Uint8Array {
  if (key === undefined && given !== undefined) {
    throw usageError("REACHLOG_KEY_NEXT has no effect, since the key is in its file: unset it");
  }
  if (key === undefined) return new Uint8Array(randomBytes(KEY_BYTES));
  if (given === undefined) throw usageError("REACHLOG_KEY_NEXT is not set: give the new key in it");
  return parseKey(given.reveal(), "REACHLOG_KEY_NEXT");
}
