import { randomBytes } from "node:crypto";
import type { Config } from "../config/config.ts";
import { createEventLog, STREAMS } from "../log/event-log.ts";
import { makeId } from "../platform/clock.ts";
import { locateLog } from "../privacy/log-place.ts";
import { openLog } from "../privacy/open-log.ts";
import { KEY_BYTES, keyId, parseKey } from "../vault/derive-keys.ts";
import { endRotation, nameOfKey, rotateKey, writeKeyFile } from "../vault/master-key.ts";
import { absolutePath, Command, group, JSON_OPTION, Option, type MakeCommand } from "./shared/command.ts";
import { answer, type Terminal } from "./shared/terminal.ts";
import { COMMAND_METADATA, requireLog } from "./shared/log-session.ts";
import { usageError } from "../platform/service-error.ts";

const show: MakeCommand = (terminal) =>
  new Command("show")
    .summary("show the master key's id and where the key comes from")
    .description(
      `Shows the master key's id and where the key comes from. The id identifies the key
and discloses nothing else about it.`,
    )
    .option(...JSON_OPTION)
    .action(async ({ json }) => {
      const config = await requireLog(terminal);
      await using log = await openLog(config);
      const source = nameOfKey(locateLog(config).secrets);
      const [id, is_former_given] = [keyId(log.master), log.isFormerGiven];
      const note = is_former_given ? "; REACHLOG_KEY still holds the former one" : "";
      answer(terminal, json, { id, source, is_former_given }, `the key ${id}, of ${source}${note}\n`);
    });

const rotate: MakeCommand = (terminal) =>
  new Command("rotate")
    .summary("replace the master key")
    .description(
      `Replaces the master key: re-encrypts the tokens in the vault and the keys of
personal data with a new one, and retires the former one. For a log in a file, stop
the service first.

If the key is in its file beside the log, a new key is made and replaces it. If
REACHLOG_KEY holds it, give the new key in REACHLOG_KEY_NEXT (openssl rand -base64
32), and put it into REACHLOG_KEY afterwards; the former key stays valid until the
first start with the new one. On PostgreSQL instances keep running, and may restart
with either key; once all have the new one, --end retires the former.

If it is killed, both keys stay valid, and the next command or start finishes the
rotation. Console sessions end. Earlier backups still need the former key.`,
    )
    .option("--keep <file>", "write the former key to a new file; keep it for the backups made before", absolutePath)
    .addOption(new Option("--end", "on PostgreSQL: retire the former key").conflicts("keep"))
    .option(...JSON_OPTION)
    .examples("reachlog key rotate --keep former.key", "reachlog key rotate --end")
    .addHelpText("after", "\nExit codes: 0 done, 75 the service is running, 78 the key is not the right one.")
    .action(({ keep, end, json }) =>
      end === true ? endKeyRotation(terminal, json) : rotateMasterKey(terminal, keep, json),
    );

export const key = group("key", "show or rotate the master key", [show, rotate]);

/** Owns the log as the service does, so that no service runs meanwhile. Throws StoreOwned. */
async function rotateMasterKey(terminal: Terminal, keep: string | undefined, json: boolean | undefined): Promise<void> {
  const config = await requireLog(terminal);
  await using store = await openLog(config, { owner: `reachlog key rotate, pid ${process.pid}` });
  const from = store.master;
  const to = chooseNextKey(config);
  const ids = { from: keyId(from), to: keyId(to) };
  if (ids.from === ids.to) throw usageError(`the key ${ids.to} is already in use: put it into REACHLOG_KEY`);
  if (keep !== undefined) writeKeyFile(keep, from);
  const { secrets } = locateLog(config);
  await rotateKey(secrets, store.vault, { from, to });
  const options = { key: `rotation/${ids.from}/${ids.to}` };
  const eventLog = createEventLog(store, makeId);
  await eventLog.append(STREAMS.access, [{ type: "KeyRotated", data: ids }], COMMAND_METADATA, options);
  answer(terminal, json, { ...ids, kept: keep ?? null }, `the key is now ${ids.to}; it was ${ids.from}\n`);
  if (json === true) return;
  if (config.key !== undefined) {
    const end = secrets.isShared ? "reachlog key rotate --end" : "the first start with the new one";
    terminal.out(`put REACHLOG_KEY_NEXT into REACHLOG_KEY: the former key stays valid until ${end}\n`);
  }
  terminal.err(
    keep === undefined
      ? "earlier backups open only with the former key\n"
      : `the former key is in ${keep}: earlier backups open only with it\n`,
  );
}

/** Instances with the former key keep running until they stop. */
async function endKeyRotation(terminal: Terminal, json: boolean | undefined): Promise<void> {
  const { secrets } = locateLog(await requireLog(terminal));
  if (!secrets.isShared) throw usageError("--end is for a log on PostgreSQL: a start with the new key ends a rotation");
  const is_ended = await endRotation(secrets);
  const text = is_ended ? "the former key is retired" : "no rotation is in progress";
  answer(terminal, json, { is_ended }, `${text}\n`);
}

function chooseNextKey({ key, nextKey: given }: Config): Uint8Array {
  if (key === undefined && given !== undefined) {
    throw usageError("REACHLOG_KEY_NEXT has no effect, since the key is in its file: unset it");
  }
  if (key === undefined) return new Uint8Array(randomBytes(KEY_BYTES));
  if (given === undefined) throw usageError("REACHLOG_KEY_NEXT is not set: give the new key in it");
  return parseKey(given.reveal(), "REACHLOG_KEY_NEXT");
}
