import { join } from "node:path";
import { isWhole } from "../../harness/case-count.ts";
import type { WatchedWorld } from "./watched-world.ts";

/** Command lines to run for every command. A word in capitals stands for a value of the installation. */
const LINES: Readonly<Record<string, readonly string[]>> = {
  serve: [],
  init: ["init --set DAILY_LIMIT=500"],
  help: ["help", "help stats"],
  demo: ["demo --chat icq"],
  sandbox: ["sandbox --chat icq"],
  doctor: ["doctor", "doctor --json", "doctor --online", "doctor --online --json"],
  ready: ["ready", "ready --json"],
  settings: ["settings"],
  recipients: [
    "recipients list",
    "recipients list --json",
    "recipients show grace_codes",
    "recipients consent grace_codes --tracking denied --tracking-source mail",
    "recipients evidence grace_codes --out DIRECTORY/evidence.json",
    "recipients suppress ada_builds",
    "recipients retry grace_codes",
    "recipients forget ada_builds --yes",
  ],
  suppressions: ["suppressions import DIRECTORY/elsewhere.env --format csv", "suppressions export"],
  outreach: ["outreach preview", "outreach preview --json", "outreach reconcile"],
  results: ["results", "results --json"],
  stats: ["stats", "stats --by variant --json"],
  quota: ["quota --json"],
  campaigns: [
    "campaigns create spring --text Hi",
    "campaigns change spring --source list --json",
    "campaigns list",
    "campaigns show spring --json",
    "campaigns count spring",
    "campaigns end spring --yes",
  ],
  report: ["report"],
  runs: ["runs", "runs --json"],
  links: ["links list", "links list --json", "links add spring https://shop.example/"],
  clicks: ["clicks", "clicks go.example/s --json", "clicks forget 203.0.113.7 --yes --json"],
  replay: ["replay --json"],
  audit: [
    "audit verify",
    "audit head",
    "audit head --public-key",
    "audit head --out DIRECTORY/head.txt",
    "audit prove 1 --out DIRECTORY/event.tlog-proof --plain",
    "audit check DIRECTORY/event.tlog-proof --public-key nothing",
    "audit consistency DIRECTORY/head.txt DIRECTORY/head.txt --json",
    "audit show grace_codes --newest",
    "audit change 1 --projection contacts --json",
    "audit show go.example/s --json",
    "audit export",
    "audit export --format csv --out DIRECTORY/export.csv",
    "audit export --format cloudevents",
  ],
  // The key is invalid, so this command line is refused. A valid one would run until it is stopped.
  witness: ["witness serve --data DIRECTORY/witness --log-key nothing"],
  backup: ["backup DIRECTORY/backup"],
  archive: ["archive --before 2", "archive --before 2 --json"],
  "upgrade-check": ["upgrade-check"],
  restore: ["restore DIRECTORY/backup --rehearse"],
  // The service of this test has the log open, so the command `restored` only answers with its refusal here.
  restored: ["restored", "restored --json"],
  "clock-corrected": ["clock-corrected", "clock-corrected --json"],
  migrate: ["migrate DIRECTORY/elsewhere.env"],
  // Commands that show or change a secret are tested elsewhere, so only harmless lines are here.
  token: ["token list", "token list --json", "token remove ffff"],
  key: ["key show", "key show --json"],
  deliveries: [
    "deliveries list",
    "deliveries list --json",
    "deliveries channels",
    "deliveries channels --json",
    "deliveries lag",
    "deliveries retry --all --yes",
  ],
  account: ["account show", "account show --json", "account unlink"],
  completion: ["completion bash"],
  // This command ends when its input ends, which is immediately here.
  mcp: ["mcp"],
};

/**
 * Runs each command that the help lists, with each of its lines in LINES. The first line runs as a separate process,
 * the others in this process unless `isWhole`. Throws if LINES lacks a command.
 */
export async function runEveryCommand(world: WatchedWorld): Promise<number> {
  world.file("elsewhere.env", `DATABASE_URL=sqlite:${join(world.directory, "elsewhere.sqlite")}\n`);
  const { out } = await world.execute("--help");
  const names = [...out.matchAll(/^ {2}([\w-]+) {2}/gm)].map(([, name = ""]) => name);
  let count = 0;
  for (const name of names) {
    const lines = LINES[name];
    if (lines === undefined) throw new Error(`no command line of ${name} is tried`);
    for (const [index, line] of lines.entries()) {
      const args = line.replace("DIRECTORY", world.directory).split(" ");
      await (index === 0 || isWhole ? world.execute(...args) : world.command(...args));
      count += 1;
    }
  }
  return count;
}

/** Returns malformed settings that contain a secret. The service reports them as faults without the value. */
export function misformed(secret: string): Record<string, string> {
  return {
    API_TOKENS: `name:${secret} ${secret},${secret},a:sha256:${secret}`,
    REACHLOG_KEY: `${secret}x`,
    X_CLIENT_SECRET: `${secret} ${secret}`,
    X_APP_BEARER_TOKEN: `${secret} ${secret}`,
    X_API_URL: `https://user:${secret}@x.example`,
    META_ACCESS_TOKEN: `${secret} `.repeat(2),
    CHAT_WEBHOOK_URL: `ftp://chat.example/${secret}`,
    TELEGRAM_BOT_TOKEN: secret,
    LINE_CHANNEL_ACCESS_TOKEN_FILE: secret,
    WHATSAPP_APP_SECRET: `${secret} ${secret}`,
    WHATSAPP_VERIFY_TOKEN: `${secret} ${secret}`,
    WHATSAPP_ACCESS_TOKEN_FILE: `/etc/${secret}`,
    DATABASE_URL: `postgres://user:${secret}@db.example/log`,
    PUBLIC_URL: `https://${secret}@x.example/${secret}`,
  };
}
