import { parse, UsageError, type Command } from "./command.ts";
import { rotate } from "./key/rotate.ts";
import { show } from "./key/show.ts";

export const key: Command = {
  summary: "show or exchange the master key",
  help: `reachlog key show [--json]
reachlog key rotate [--keep FILE]

show     the master key's id and where it comes from; the id tells keys apart and
         nothing else of them
rotate   puts another master key in force, with the service stopped: the tokens in
         the vault and the keys of personal data are sealed with the new one, and
         open with the former one no more

Where the key is in its file beside the log, a new one is made and takes its
place. Where REACHLOG_KEY holds it, give the new one in REACHLOG_KEY_NEXT (openssl
rand -base64 32), and put it into REACHLOG_KEY afterwards; until something is
started with it, the former one stays good.

Killed at any moment, both keys are known to what is there, and whatever is run
next finishes. Sessions of the console end. Backups that were made before open
with the former key only: --keep writes it to FILE (which must not exist), to be
kept with them.

Exit codes: 0 done, 75 the service is running, 78 the key is not the right one.
`,
  async run(args, terminal) {
    const { values, positionals } = parse(
      args,
      {
        json: { type: "boolean", default: false },
        keep: { type: "string" },
      },
      1,
    );
    const [action] = positionals;
    if (action === "show") return show(terminal, values.json);
    if (action === "rotate") return rotate(terminal, values.keep);
    throw new UsageError("key wants show or rotate");
  },
};
