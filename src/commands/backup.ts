import { Command, configOf, EXIT, JSON_OPTION, type MakeCommand } from "./command.ts";
import { logPlaceOf } from "../service/log-place.ts";
import { nameOfKey } from "../vault/master-key.ts";
import { openExistingStoredLog } from "./log-session.ts";
import { startProgress } from "./progress.ts";

export const backup: MakeCommand = (terminal, exit) =>
  new Command("backup")
    .summary("copy the log beside a running service, and check the copy")
    .description(
      `Writes a copy of the log as it is at one moment, beside a running service, then
reads all of it: SQLite's integrity check and the hash chain. The copy has its
name only once it is found whole. Prints its position, head hash and size. Keep
the first two elsewhere: whoever can write the file can rewrite it.`,
    )
    .argument("<file>", "the copy, readable by its owner only; an existing file is never overwritten")
    .option(...JSON_OPTION)
    .addHelpText(
      "after",
      `
Example:
  reachlog backup /mnt/backup/monday.sqlite

Not in it, and never copied silently; copy them with the service stopped:
  the vault   reachlog.vault.sqlite beside the log: the account's tokens,
              encrypted
  the keys    reachlog.keys.sqlite beside the log, or KEYS_FILE: without it
              nothing personal in the log can be read. Copy it to another place
              than the log, and keep only the newest copies: an older one,
              beside a log of before a reachlog forget, brings back whoever was
              forgotten since
  the key     reachlog.key beside the log, or REACHLOG_KEY: without it neither
              can be opened. Keep it apart from the copies of both
  signing     reachlog.signing.pem beside the log, which signs its checkpoints

To restore: stop the service, move the log and its -wal and -shm files away, and
copy FILE to the log's place. When the checkpoint beside the log knew more than
the copy holds, the start refuses with 78: reachlog serve --accept-loss, once.
The service records that the log was restored: no run on that day, and what may
have been sent or delivered since the backup is not repeated. Consumers that
keep a cursor and saw more than the copy holds are refused from then on. A
FILE.*.partial is left of a backup that was killed, and may be deleted.`,
    )
    .action(
      exit(async (file, { json }) => {
        const config = configOf(terminal);
        await using store = await openExistingStoredLog(config);
        const progress = startProgress(terminal, "verifying", (await store.head()).position);
        const { head, bytes } = await store.backup(file, { onProgress: progress.update });
        progress.end();
        const { position, hash } = head;
        if (json === true) terminal.out(`${JSON.stringify({ file, position, hash, bytes })}\n`);
        else {
          terminal.out(`${file}: ${position} events, the chain is whole; head ${position} ${hash}; ${bytes} bytes\n`);
          const { secrets } = logPlaceOf(config);
          terminal.err(`not in it: ${secrets.vault.name}, ${secrets.keys.name} and ${nameOfKey(secrets)}\n`);
        }
        return EXIT.ok;
      }),
    );
