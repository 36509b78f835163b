import { randomBytes } from "node:crypto";
import { writeKeyFile } from "../../vault/key-file.ts";
import { KEY_BYTES, keyId, parseKey } from "../../vault/key.ts";
import { rotatedOf } from "../../vault/master-key.ts";
import { rotateKey } from "../../vault/rotation.ts";
import { makeId } from "../../platform/clock.ts";
import type { Config } from "../../config/config.ts";
import { createEventLog, STREAMS } from "../../log/event-log.ts";
import { masterKeyOf, openKey, openLog } from "../../service/open.ts";
import { configOf, EXIT, UsageError, type Terminal } from "../command.ts";
import { COMMAND_METADATA, refuseNoLog } from "../log-session.ts";

/** Takes the log as its one service does, so that none runs meanwhile. Throws StoreOwned. */
export async function rotate(terminal: Terminal, keep: string | undefined): Promise<number> {
  const config = configOf(terminal);
  refuseNoLog(config);
  await using store = await openLog(config, { owner: `reachlog key rotate, pid ${process.pid}` });
  const from = openKey(config);
  const to = nextKey(config);
  const ids = { from: keyId(from), to: keyId(to) };
  if (ids.from === ids.to) throw new UsageError(`the key ${ids.to} is in force already: put it into REACHLOG_KEY`);
  if (keep !== undefined) writeKeyFile(keep, from);
  rotateKey(rotatedOf(masterKeyOf(config)), { from, to });
  const options = { key: `rotation/${ids.from}/${ids.to}` };
  const eventLog = createEventLog(store, makeId);
  await eventLog.append(STREAMS.access, [{ type: "KeyRotated", data: ids }], COMMAND_METADATA, options);
  terminal.out(`the key ${ids.to} is in force; it was ${ids.from}\n`);
  if (config.key !== undefined) {
    terminal.out(
      "put REACHLOG_KEY_NEXT into REACHLOG_KEY: the former key stays good until something is started with it\n",
    );
  }
  terminal.err(
    keep === undefined
      ? "backups that were made before open with the former key only\n"
      : `the former key is in ${keep}: backups that were made before open with it only\n`,
  );
  return EXIT.ok;
}

function nextKey({ key, nextKey: given }: Config): Uint8Array {
  if (key === undefined && given !== undefined) {
    throw new UsageError("REACHLOG_KEY_NEXT has no effect where the key is in its file: a new one is made");
  }
  if (key === undefined) return new Uint8Array(randomBytes(KEY_BYTES));
  if (given === undefined) throw new UsageError("REACHLOG_KEY_NEXT is not set: give the new key in it");
  return parseKey(given.reveal(), "REACHLOG_KEY_NEXT");
}
