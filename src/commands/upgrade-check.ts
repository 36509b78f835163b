import type { Config } from "../config/config.ts";
import { finding, type Finding } from "../service/examination-finding.ts";
import { VERSION } from "../platform/version.ts";
import { examineStored } from "../service/check-stored-data-is-readable.ts";
import { Command, readServedConfig, type MakeCommand } from "./shared/command.ts";
import { report } from "./shared/print-findings.ts";
import type { Terminal } from "./shared/terminal-answers-and-exit-codes.ts";

export const upgradeCheck: MakeCommand = (terminal) =>
  new Command("upgrade-check")
    .summary("check that this version can serve this log")
    .description(
      `Checks that this version of reachlog can serve this log with these settings, and
changes nothing: it must know the formats of the log, the vault and the keys, each
event type in its newest version, and each setting. Run it with the new version
before you stop the old one. Exit code 1 when it cannot.`,
    )
    .option("--json", "answer with one JSON object for each check")
    .examples("reachlog upgrade-check --json")
    .action(async ({ json }) => report(terminal, await examineAll(terminal), json === true));

async function examineAll(terminal: Terminal): Promise<readonly Finding[]> {
  let config: Config;
  try {
    config = await readServedConfig(terminal);
  } catch (fault) {
    return [await finding("settings", () => Promise.reject(fault))];
  }
  return [
    { what: "settings", state: "ok", detail: `reachlog ${VERSION} accepts all of them` },
    ...config.warnings.map((detail) => ({ what: "settings", state: "warning" as const, detail })),
    ...(await examineStored(config)),
  ];
}
