import { existsSync } from "node:fs";
import { openVault } from "../vault/vault.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../config/config.ts";
import { createAnnounce } from "../delivery/announce.ts";
import { logFiles } from "../log/log-files.ts";
import { createLogger } from "../platform/logger.ts";
import { missingPlaceholders } from "../template/template.ts";
import { openOutreach } from "../service/open-outreach.ts";
import { openChannels, openKey, openLog, outbound } from "../service/open.ts";
import { startProjector } from "../projector/projector.ts";
import { configOf, EXIT, parse, type Command, type Terminal } from "./command.ts";
import { coreDumpWarning } from "./doctor/core-dumps.ts";
import { openExistingLog, openSession } from "./log-session.ts";
import { printable } from "./table.ts";

/** One thing looked at. `mend` says what to do about it. */
interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** How long a network may take to answer. */
const CHECK_TIMEOUT_MS = 10_000;

export const doctor: Command = {
  summary: "check configuration, log, keys and, with --online, the networks",
  help: `reachlog doctor [--online] [--json]

Checks the configuration, the log's hash chain, the key and the vault, and
whether a crash would write a core dump. With
--online it also asks each configured network whether its credential works
(nothing is posted). Exit code 1 when something is wrong, with how to mend it.
`,
  async run(args, terminal) {
    const { values } = parse(args, {
      online: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    });
    const config = configOf(terminal);
    const findings: Finding[] = [
      { what: "configuration", ok: true, detail: completeness(config) },
      ...[...config.warnings, coreDumpWarning()].flatMap((detail) => warned(detail)),
      ...(await checkFiles(config)),
      ...(values.online ? await checkNetworks(config, terminal) : []),
    ];
    for (const finding of findings) {
      const { what, ok, detail } = finding;
      terminal.out(
        values.json ? `${JSON.stringify(finding)}\n` : `${ok ? "ok   " : "WRONG"} ${what}: ${printable(detail)}\n`,
      );
    }
    return findings.every(({ ok }) => ok) ? EXIT.ok : EXIT.fault;
  },
};

/** Nothing has to be configured, but whoever forgot it wants to know. */
function completeness({ x, outreach, meta, chat, messaging }: Config): string {
  const parts = {
    "outreach (X_CLIENT_ID)": x,
    "the message (MESSAGE_TEMPLATE)": x === undefined ? "of no use" : outreach.template,
    ads: meta,
    chat,
    messaging,
  };
  const missing = Object.entries(parts).flatMap(([name, part]) => (part === undefined ? [name] : []));
  return missing.length === 0 ? "complete" : `without faults; not configured: ${missing.join(", ")}`;
}

function warned(detail: string | undefined): Finding[] {
  return detail === undefined ? [] : [{ what: "warning", ok: true, detail }];
}

async function checkFiles(config: Config): Promise<Finding[]> {
  const files = logFiles(config.log.file);
  if (!existsSync(files.log)) {
    return [{ what: "log", ok: true, detail: `${files.log} is not there yet; the first start makes it` }];
  }
  return [
    await finding("log", () => checkLog(config)),
    await finding("vault", () => {
      if (!existsSync(files.vault)) return "not there yet; the first start makes it";
      if (config.key === undefined && !existsSync(files.key))
        throw new Error(`${files.key} is gone: restore it, or set REACHLOG_KEY`);
      openVault(files.vault, openKey(config))[Symbol.dispose]();
      return "opens with this key";
    }),
  ];
}

async function checkLog(config: Config): Promise<string> {
  await using store = await openLog(config);
  const { ok, checked, fault } = await store.verify();
  if (!ok) throw new Error(`the chain is broken at position ${fault?.position}: ${fault?.reason}; restore a backup`);
  await using projector = await startProjector(store);
  const { template } = config.outreach;
  const missing =
    template === undefined ? [] : missingPlaceholders(template, projector.state("contacts").fields.keys());
  if (missing.length > 0) throw new Error(`MESSAGE_TEMPLATE: no imported recipient has ${missing.join(", ")}`);
  return `${checked} events, the chain is whole`;
}

async function checkNetworks(config: Config, terminal: Terminal): Promise<Finding[]> {
  const channels = openChannels(config, outbound(config));
  const checks = channels.map(async (channel): Promise<Finding> => {
    const { ok, detail } = await channel.check(CHECK_TIMEOUT_MS);
    return { what: `${channel.name} (${channel.network})`, ok, detail };
  });
  if (config.x !== undefined) checks.push(finding("outreach (x)", () => checkAccount(config, terminal)));
  return Promise.all(checks);
}

/** Asks X who the authorized account is; a token that has run out is refreshed for that, as the service does. */
async function checkAccount(config: Config, terminal: Terminal): Promise<string> {
  if (!existsSync(config.log.file)) return "no account is authorized yet";
  await using stack = new AsyncDisposableStack();
  const session = await openSession(stack, await openExistingLog(config));
  if (session.projector.state("account").user === null) return "no account is authorized yet";
  const logger = createLogger("warn", terminal.err, systemClock);
  const safeFetch = outbound(config);
  const configured = openChannels(config, safeFetch).map(({ name }) => name);
  const announce = createAnnounce({ ...session, configured, logger });
  const opened = openOutreach({ config, key: openKey(config), ...session, logger, safeFetch, announce }, stack);
  if (opened === undefined) throw new Error("X is not configured");
  const { username } = await opened.tokens.use((token) => opened.network.me(token));
  return `the grant of @${username} works`;
}

async function finding(what: string, check: () => string | Promise<string>): Promise<Finding> {
  try {
    return { what, ok: true, detail: await check() };
  } catch (fault) {
    return { what, ok: false, detail: fault instanceof Error ? fault.message : String(fault) };
  }
}
