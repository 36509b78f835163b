// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { backup } from "../../src/commands/backup-migrate-and-archive.ts";
import {
  account,
  audit,
  clicks,
  contact,
  deliveries,
  forget,
  recipients,
  outreach,
  token,
} from "../harness/in-process/operation-commands.ts";
import { runCommand, type MakeCommand } from "../../src/commands/shared/command.ts";
import { demo } from "../../src/commands/development/demo.ts";
import { doctor } from "../../src/commands/doctor.ts";
import { key } from "../../src/commands/master-key.ts";
import { quota } from "../harness/in-process/operation-commands.ts";
import { replay } from "../../src/commands/replay.ts";
import { restoreCommand } from "../../src/commands/restore-and-clock-corrected.ts";
import { sandbox } from "../../src/commands/development/sandbox.ts";
import { serveCommand } from "../../src/commands/serve.ts";
import { stats } from "../harness/in-process/operation-commands.ts";

/** Each command, with as many arguments as it accepts. One more argument must be refused. */
const FULL: readonly (readonly [MakeCommand, string])[] = [
  [serveCommand, ""],
  [demo, ""],
  [sandbox, ""],
  [doctor, ""],
  [stats, ""],
  [quota, ""],
  [replay, ""],
  [contact, "ada_builds"],
  [clicks, "go.example/welcome"],
  [account, "show"],
  [account, "unlink"],
  [recipients, "list"],
  [recipients, "suppress ada_builds"],
  [recipients, "import people.csv"],
  [token, "new web"],
  [token, "list"],
  [key, "show"],
  [backup, "copy"],
  [restoreCommand, "copy"],
  [forget, "ada_builds"],
  [audit, "tail"],
  [audit, "verify"],
  [audit, "head"],
  [audit, "export"],
  [audit, "show ada_builds"],
  [audit, "import log.jsonl"],
  [deliveries, "list"],
  [deliveries, "channels"],
  [deliveries, "lag"],
  [deliveries, "show 01a1fd59-3b3a-7515-964c-67ff53c10ed1"],
  [deliveries, "resume chat"],
  [outreach, "watch"],
  [outreach, "preview ada_builds"],
  [outreach, "reconcile"],
];

/**
 * Terminal whose settings name a log that cannot exist. A command that accepts its arguments fails on this log instead.
 */
const SILENT_WORLD = {
  env: { DATABASE_URL: "sqlite:/dev/null/none.sqlite" },
  out: () => {},
  err: () => {},
  interactive: false,
  signal: AbortSignal.abort(130),
};

test.each(FULL.map(([make, line]) => [make(SILENT_WORLD).name(), line, make] as const))(
  "%s %s rejects a surplus argument",
  async (_name, line, make) => {
    const args = [...line.split(" ").filter((word) => word !== ""), "tpyo"];
    const refusal = await runCommand(make, args, SILENT_WORLD).catch((fault: unknown) => fault);
    expect(refusal).toMatchObject({ kind: "usage", message: expect.stringMatching(/^too many arguments.*\btpyo\.$/) });
  },
);
