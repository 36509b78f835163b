import { endKeyRotation, identifyMasterKey, rotateMasterKey } from "../privacy/rotate-master-key.ts";
import { absolutePath, Command, group, JSON_OPTION, Option, type MakeCommand } from "./shared/command.ts";
import { COMMAND_METADATA, requireLog } from "./shared/open-log-and-record-reads.ts";
import { answer, type Terminal } from "./shared/terminal-answers-and-exit-codes.ts";

const show: MakeCommand = (terminal) =>
  new Command("show")
    .summary("show the master key's id and where the key comes from")
    .description(
      `Shows the master key's id and where the key comes from. The id identifies the key
and discloses nothing else about it.`,
    )
    .option(...JSON_OPTION)
    .action(async ({ json }) => {
      const { id, source, isFormerGiven: is_former_given } = await identifyMasterKey(await requireLog(terminal));
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
    .addHelpText("after", "\nExit codes: 0 done, 75 the service is running, 78 the key is wrong.")
    .action(({ keep, end, json }) => (end === true ? showEnd(terminal, json) : showRotation(terminal, keep, json)));

export const key = group("key", "show or rotate the master key", [show, rotate]);

async function showRotation(terminal: Terminal, keep: string | undefined, json: boolean | undefined): Promise<void> {
  const config = await requireLog(terminal);
  const { from, to, isShared } = await rotateMasterKey(config, keep, COMMAND_METADATA);
  answer(terminal, json, { from, to, kept: keep ?? null }, `the key is now ${to}; it was ${from}\n`);
  if (json === true) return;
  if (config.key !== undefined) {
    const end = isShared ? "reachlog key rotate --end" : "the first start with the new one";
    terminal.out(`put REACHLOG_KEY_NEXT into REACHLOG_KEY: the former key stays valid until ${end}\n`);
  }
  terminal.err(
    keep === undefined
      ? "earlier backups open only with the former key\n"
      : `the former key is in ${keep}: earlier backups open only with it\n`,
  );
}

async function showEnd(terminal: Terminal, json: boolean | undefined): Promise<void> {
  const is_ended = await endKeyRotation(await requireLog(terminal));
  const text = is_ended ? "the former key is retired" : "no rotation is in progress";
  answer(terminal, json, { is_ended }, `${text}\n`);
}
