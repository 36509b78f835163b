import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { SCOPE_NAMES } from "../../config/tokens.ts";
import { findFreePort, isPortFree } from "../../platform/free-port.ts";
import { createLogger } from "../../platform/logger.ts";
import { isBun } from "../../platform/bun-or-node.ts";
import { untilAborted } from "../../platform/signals.ts";
import { temporaryFolder } from "../../platform/new-file.ts";
import { PROGRAM } from "../shared/program-invocation.ts";
import { importFile } from "../recipients/import.ts";
import { untilStopped } from "../serve.ts";
import { Command, createNumberParser, type MakeCommand, parsePort, readServedConfig } from "../shared/command.ts";
import { EXIT, type Terminal } from "../shared/terminal.ts";
import { createMovedClock, makeHistory } from "./demo-history.ts";
import { createDemoInstances } from "./demo-instances.ts";
import { loadSandbox, startDatabaseServer } from "./dev-dependencies.ts";
import { chatOption, type Choice, messagingOption } from "./sandbox.ts";
import { usageError } from "../../platform/service-error.ts";

const TEMPLATE = `Hi {{name|there}}, thanks for asking about {{product|our product}}: {{link https://shop.example/welcome}}
---
Hello {{name|there}}! Here is what you wanted to know about {{product|our product}}: {{link https://shop.example/welcome}}`;

/** X asks for a minute between messages, too long to watch. The demo's sandbox allows a shorter spacing. */
const DEMO_SPACING_S = "1";
const DEMO_DM_LIMIT = 1_440;

export const demo: MakeCommand = (terminal) =>
  new Command("demo")
    .summary("run the service on a fresh log beside a sandbox of the networks")
    .description(
      `Starts the sandbox and the service on loopback, with sample recipients and a fresh
log, and prints what to do next. Needs no account. Everything is deleted at the
end, unless kept.`,
    )
    .option("--port <port>", "port of the service (0: any free one)", parsePort, 3000)
    .option("--sandbox-port <port>", "port of the sandbox (0: any free one)", parsePort, 4010)
    .option("--keep <folder>", "keep the log there, or use the one already there")
    .option("--instances <count>", "serve one log in PostgreSQL with this many processes", parseCount, 1)
    .addOption(chatOption())
    .addOption(messagingOption())
    .examples("reachlog demo --keep ./demo --chat discord")
    .action((options) => runDemo(terminal, options));

interface DemoOptions extends Choice {
  readonly port: number;
  readonly sandboxPort: number;
  readonly keep?: string | undefined;
  readonly instances: number;
}

/** Each instance needs its own port, and memory. */
const INSTANCES_MAX = 9;

const parseCount = createNumberParser(`--instances is a number from 1 to ${INSTANCES_MAX}`, 1, INSTANCES_MAX);

async function runDemo(terminal: Terminal, options: DemoOptions): Promise<number> {
  const { port, sandboxPort, keep, chat, messaging } = options;
  const isShared = options.instances > 1;
  if (isShared && keep !== undefined) throw usageError("--keep keeps a log in a file: several instances have none");
  if (isShared && !isBun) throw usageError("--instances starts processes, which it does on Bun only");
  const { startSandbox, settingsOf } = await loadSandbox();
  await using server = isShared ? await startDatabaseServer() : undefined;
  await using instances = isShared ? createDemoInstances(terminal.err) : undefined;
  const clock = createMovedClock();
  const x = { dmLimit: DEMO_DM_LIMIT };
  const sandboxAt = await freePort(sandboxPort, "sandbox", terminal);
  await using sandbox = await startSandbox({ port: sandboxAt, x, instances, clock: clock.now });
  const ports = await findPorts(port, options.instances, terminal);

  // The folder of the log, its keys and the settings: a temporary one unless it is kept.
  using folder = keep === undefined ? temporaryFolder("reachlog-demo-") : undefined;
  const directory = folder?.path ?? resolve(keep ?? "");
  mkdirSync(directory, { recursive: true });
  const template = join(directory, "message.txt");
  writeFileSync(template, TEMPLATE);
  const token = randomBytes(24).toString("base64url");
  const env = {
    ...settingsOf(sandbox, { chat, messaging }),
    PORT: String(ports[0]),
    DATABASE_URL: (await server?.newDatabase()) ?? `sqlite:${join(directory, "reachlog.sqlite")}`,
    // A log in a file also has its master key in a file.
    ...(isShared && { REACHLOG_KEY: randomBytes(32).toString("base64") }),
    API_TOKENS: `demo:${token}:scope=${SCOPE_NAMES.join("+")}`,
    MESSAGE_TEMPLATE_FILE: template,
    MESSAGE_TEMPLATE_NAME: "Welcome",
    SEND_SPACING_SECONDS: DEMO_SPACING_S,
    IN_DOUBT_SETTLE_SECONDS: "10",
    LINK_BASE: `${toUrl(ports[0] ?? port)}/l`,
    REDIRECTS: "on",
    PERSONAL_LINKS: "on",
    LOG_LEVEL: "warn",
  };
  const isNew = !isShared && !existsSync(join(directory, "reachlog.sqlite"));
  const inDemo: Terminal = { ...terminal, env, signal: terminal.signal };
  const sample = fileURLToPath(new URL(import.meta.resolve("@reachlog/sandbox/recipients.csv")));
  if (isNew) {
    // The history is made without chat and messaging, which take one message a second. They get its clicks together,
    // once the demo runs.
    const quick = Object.entries(env).filter(([name]) => !/^(?:CHAT|TELEGRAM|LINE|WHATSAPP|MESSAGING)_/.test(name));
    const past = { ...Object.fromEntries(quick), SEND_SPACING_SECONDS: "0", LOG_LEVEL: "error" };
    const config = await readServedConfig({ ...inDemo, env: past });
    await makeHistory(config, sandbox, clock, token, createLogger("error", terminal.err, clock.now));
  }
  await importFile(inDemo, sample, { format: "csv" });
  const settings = join(directory, "demo.env");
  if (instances !== undefined) {
    for (const one of ports) await instances.add(toUrl(one), { ...env, PORT: String(one) });
    const [url = ""] = instances.list().map((instance) => instance.url);
    writeSettingsFile(settings, { ...env, PORT: new URL(url).port });
    terminal.out(nextSteps(instances.list(), sandbox.url, token, settings));
    await untilAborted(terminal.signal);
    return EXIT.ok;
  }
  const config = await readServedConfig(inDemo);
  const { startService } = await import("../../service/service.ts");
  const service = await startService(config, createLogger(config.logLevel, terminal.err, Date.now));
  writeSettingsFile(settings, { ...env, PORT: new URL(service.url).port });
  terminal.out(nextSteps([service], sandbox.url, token, settings));
  return await untilStopped(service, config, inDemo);
}

/** Returns the port, or a free one if it is in use, and says so on the terminal. */
async function freePort(port: number, what: string, terminal: Terminal): Promise<number> {
  if (port !== 0 && (await isPortFree(LOOPBACK, port))) return port;
  const free = await findFreePort(LOOPBACK);
  if (port !== 0) terminal.err(`port ${port} is in use: the ${what} takes ${free}\n`);
  return free;
}

/** Returns consecutive ports; one that is in use is replaced by a free one. */
function findPorts(port: number, count: number, terminal: Terminal): Promise<readonly number[]> {
  const wanted = Array.from({ length: count }, (_, at) => (port === 0 ? 0 : port + at));
  return Promise.all(wanted.map((one) => freePort(one, "service", terminal)));
}

const LOOPBACK = "127.0.0.1";

const toUrl = (port: number): string => `http://${LOOPBACK}:${port}`;

function nextSteps(services: readonly { readonly url: string }[], sandboxUrl: string, token: string, settings: string) {
  const [{ url } = { url: "" }] = services;
  const others = services
    .slice(1)
    .map((service) => `          ${service.url}      (the same log, by another instance)\n`);
  return `
reachlog  ${url}      (console: sign in with the token)
${others.join("")}sandbox   ${sandboxUrl}      (what the networks received; faults to switch on${others.length > 0 ? "; instances to kill" : ""})
token     ${token}

1. ${others.length > 0 ? `Authorize the sandbox's X account in a browser:\n     ${url}/social/auth` : `Look at two weeks of outreach, which the service has made on a clock set back:\n     ${url}/results`}
2. See which recipients a run would write to, then let it run:
     curl -s -X POST ${url}/social/run -H 'content-type: application/json' -d '{"dry_run":true}'
     curl -s -X POST ${url}/social/run -H 'prefer: wait=60'
3. Post a click, and see in the sandbox that it is dispatched to three networks:
     curl -s ${url}/api/tracking/event -H 'content-type: application/json' -d '{"event":"click","domain":"go.example","short_code":"welcome","original_url":"https://shop.example/?fbclid=abc","ip":"203.0.113.7","user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}'
4. Ask what happened, in another terminal of this folder with the demo's settings:
     set -a; . '${settings}'; set +a
     ${PROGRAM} audit tail
     ${PROGRAM} deliveries channels
     ${PROGRAM} outreach preview

Stop with Ctrl-C.
`;
}

/** The settings file holds the demo's token. */
const OWNER_ONLY = 0o600;

/**
 * Writes settings so that a shell and `bun --env-file` read them alike: one a line, each in single quotes. Replaces the
 * file of an earlier demo.
 */
function writeSettingsFile(file: string, settings: Readonly<Record<string, string>>): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name}='${fit(name, value)}'\n`);
  rmSync(file, { force: true });
  writeFileSync(file, lines.join(""), { mode: OWNER_ONLY, flag: "wx" });
}

/** Throws for a quote or a line break: a shell and `bun --env-file` share no way to escape them. */
function fit(name: string, value: string): string {
  if (/['\n\r]/.test(value)) throw new Error(`${name} holds a quote or a line break: it is to be a file of its own`);
  return value;
}
