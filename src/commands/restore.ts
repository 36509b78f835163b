import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Config } from "../config/config.ts";
import type { LogFiles } from "../log/log-files.ts";
import { ServiceError } from "../platform/service-error.ts";
import { filesOf } from "../service/log-place.ts";
import { keyError } from "../vault/error.ts";
import { loadKeyFile } from "../vault/key-file.ts";
import { parseKey } from "../vault/key.ts";
import { readManifest, type Manifest } from "./backup/manifest.ts";
import { place, rehearse } from "./backup/rehearse.ts";
import { absolutePath, Command, configOf, EXIT, JSON_OPTION, type MakeCommand, type Terminal } from "./command.ts";
import { fileLogOf } from "./log-session.ts";
import { startProgress } from "./progress.ts";

export const restore: MakeCommand = (terminal, exit) =>
  new Command("restore")
    .summary("put a backup in the place of a log that is gone, or prove it")
    .description(
      `Proves a backup in a temporary place, and then puts it where this configuration has
its log, where nothing may be yet. Proved is that its files are what they were
when somebody with the master key made it, that this key opens all that is
encrypted, that the head was signed by the log's own key, that the log holds it
and its chain is whole, and that the log's personal data has its keys.

The master key is not in a backup: give it as the service has it, in REACHLOG_KEY
or as reachlog.key beside the log. Run it as the service's user.`,
    )
    .argument("<folder>", "what reachlog backup wrote", absolutePath)
    .option("--rehearse", "only prove it: nothing is restored")
    .option(...JSON_OPTION)
    .addHelpText(
      "after",
      `
Examples:
  reachlog restore /mnt/backup/monday --rehearse
  reachlog restore /mnt/backup/monday

The proof wants as much room as the backup: in TMPDIR to rehearse, else beside
the log; a reachlog-rehearsal-* is left there of one that was killed, and may be
deleted. The first start records that the log was restored: no run on that day,
and what may have been sent or delivered since the backup is not repeated.
Consumers that keep a cursor and saw more than the backup holds are refused from
then on.`,
    )
    .action(exit((folder, { rehearse: only, json }) => restoreBackup(terminal, folder, only === true, json === true)));

async function restoreBackup(terminal: Terminal, folder: string, only: boolean, json: boolean): Promise<number> {
  const config = configOf(terminal);
  const files = filesOf(fileLogOf(config, "restore it with pg_restore, or by its server's own means"));
  const { log } = readManifest(folder);
  const master = masterOf(config, files);
  if (!only) {
    refuseExisting(files);
    for (const file of [files.log, files.keys]) mkdirSync(dirname(file), { recursive: true });
  }
  const manifest = await prove(terminal, folder, master, only ? tmpdir() : dirname(files.log), log.position);
  if (!only) await place(folder, manifest, files, master);
  const { position, hash } = manifest.log;
  const done = only ? "is whole and can be restored" : `is restored to ${files.log}`;
  terminal.out(
    json
      ? `${JSON.stringify({ folder, restored: !only, made_at: manifest.made_at, position, hash })}\n`
      : `${folder} of ${manifest.made_at} ${done}: ${position} events; head ${position} ${hash}\n`,
  );
  return EXIT.ok;
}

async function prove(
  terminal: Terminal,
  folder: string,
  master: Uint8Array,
  parent: string,
  position: number,
): Promise<Manifest> {
  const scratch = mkdtempSync(join(parent, "reachlog-rehearsal-"));
  const progress = startProgress(terminal, "verifying", position);
  try {
    return await rehearse(folder, master, { scratch, onProgress: progress.update });
  } finally {
    progress.end();
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** What of another log is left would be taken for this one's. */
function refuseExisting({ log, vault, keys, checkpoint, signingKey }: LogFiles): void {
  const places = [log, `${log}-wal`, `${log}-shm`, vault, keys, checkpoint, signingKey];
  const taken = places.filter((file) => existsSync(file));
  if (taken.length === 0) return;
  throw new ServiceError("conflict", `nothing is overwritten: move ${taken.join(", ")} away first`);
}

function masterOf({ key }: Config, files: LogFiles): Uint8Array {
  if (key !== undefined) return parseKey(key.reveal(), "REACHLOG_KEY");
  if (existsSync(files.key)) return loadKeyFile(files.key);
  throw keyError(`the master key is not in a backup: set REACHLOG_KEY, or put its file at ${files.key}`);
}
