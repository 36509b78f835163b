import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { STORY_DOMAIN } from "./invented-history/clicks.ts";
import { OPERATOR, type StoryLog } from "./invented-history/story-log-interface.ts";
import { CAMPAIGNS } from "./invented-history/write-story.ts";
import { createCaller, createMovedClock, importList, makeHistory, type RunningService } from "./demo-history.ts";
import { makeBusyHistory } from "./demo-busy-history.ts";
import { createDemoInstances } from "./demo-instances.ts";
import { startShop } from "./shop.ts";
import { startSandbox } from "./sandbox.ts";
import { settingsOf, type Choice } from "./service-settings.ts";

const TEMPLATE = `Hi {{name|there}}, thanks for asking about {{product|our product}}: {{link https://shop.example/welcome}}
---
Hello {{name|there}}! Here is what you wanted to know about {{product|our product}}: {{link https://shop.example/welcome}}`;

/**
 * Spacing between messages in the demo, in seconds. X's real limits require a minute, too long to watch; the demo's
 * sandbox allows more messages.
 */
const DEMO_SPACING_S = "1";
const DEMO_DM_LIMIT = 1_440;

/** The product, as parts that the demo calls: the sandbox does not import the service. */
export interface DemoProduct {
  /** Starts a service in this process. `clock` replaces the machine's time, in ms since the epoch. */
  start(settings: DemoSettings, clock?: () => number): Promise<DemoService>;
  /** Opens the event log that these settings name. Appended events get their times from `clock`. */
  openLog(settings: DemoSettings, clock: () => number): Promise<StoryLog>;
  /** Program and arguments that start a service in a separate process. Its settings are in the environment. */
  readonly serve: readonly [string, ...string[]];
  /** Starts a database server for several instances. */
  startDatabaseServer(): Promise<AsyncDisposable & { newDatabase(): Promise<string> }>;
  /** Returns `port`, or a free port if it is 0 or in use. `what` is the server's name for messages to the operator. */
  choosePort(port: number, what: string): Promise<number>;
  /** Command that starts the product's command line in a shell. */
  readonly program: string;
  /** All scopes of the product's API tokens. */
  readonly scopes: readonly string[];
}

type DemoSettings = Readonly<Record<string, string>>;

interface DemoService extends RunningService {
  /** Serves until the operator interrupts the demo. Resolves with the exit code. */
  untilStopped(): Promise<number>;
}

export interface DemoOptions extends Choice {
  readonly port: number;
  readonly sandboxPort: number;
  /** Folder of the demo's log, keys and settings. A log that is already there is used again. */
  readonly directory: string;
  readonly instances: number;
  /** True to write six busy weeks to a new log instead of two quiet ones. */
  readonly busy: boolean;
}

interface DemoTerminal {
  out(text: string): void;
  err(text: string): void;
  readonly signal: AbortSignal;
}

/** Runs the demo: the sandbox and a service that uses it, with a history. Resolves with the exit code. */
export async function runDemo(product: DemoProduct, options: DemoOptions, terminal: DemoTerminal): Promise<number> {
  const { directory, port, sandboxPort, busy } = options;
  const isShared = options.instances > 1;
  // Takes over the signals before anything starts, so that an interrupted demo ends in order.
  const { signal } = terminal;
  await using server = isShared ? await product.startDatabaseServer() : undefined;
  await using instances = isShared ? createDemoInstances(product.serve, terminal.err) : undefined;
  const clock = createMovedClock();
  const x = { dmLimit: DEMO_DM_LIMIT };
  const sandboxAt = await product.choosePort(sandboxPort, "sandbox");
  await using sandbox = await startSandbox({ port: sandboxAt, x, instances, clock: clock.now });
  const wanted = Array.from({ length: options.instances }, (_, at) => (port === 0 ? 0 : port + at));
  const ports = await Promise.all(wanted.map((one) => product.choosePort(one, "service")));
  const urls = ports.map((one) => `http://127.0.0.1:${one}`);
  const [url = ""] = urls;

  mkdirSync(directory, { recursive: true });
  const template = join(directory, "message.txt");
  writeFileSync(template, busy ? CAMPAIGNS.winter.text : TEMPLATE);
  const file = join(directory, "reachlog.sqlite");
  const isNew = !isShared && !existsSync(file);
  const token = randomBytes(24).toString("base64url");
  const settings = {
    ...settingsOf(sandbox, options),
    PORT: String(ports[0]),
    DATABASE_URL: (await server?.newDatabase()) ?? `sqlite:${file}`,
    // A log on a server has no file for its master key, so the key is a setting. A log in a file has its key in a file
    // next to it.
    ...(isShared && { REACHLOG_KEY: randomBytes(32).toString("base64") }),
    API_TOKENS: `${busy ? OPERATOR : "demo"}:${token}:scope=${product.scopes.join("+")}`,
    MESSAGE_TEMPLATE_FILE: template,
    MESSAGE_TEMPLATE_NAME: busy ? CAMPAIGNS.winter.name : "Welcome",
    SEND_SPACING_SECONDS: DEMO_SPACING_S,
    IN_DOUBT_SETTLE_SECONDS: "10",
    LINK_BASE: busy ? `https://${STORY_DOMAIN}` : `${url}/l`,
    REDIRECTS: "on",
    PERSONAL_LINKS: "on",
    CLICK_PARAM: "rl_click",
    LOG_LEVEL: "warn",
  };
  if (isNew && busy) await makeBusyHistory((now) => product.openLog(settings, now), sandbox, clock);
  else if (isNew) {
    // The history is made without chat and messaging, because these accept one message a second. They get its clicks
    // together once the demo runs.
    const quick = Object.entries(settings).filter(
      ([name]) => !/^(?:CHAT|TELEGRAM|LINE|WHATSAPP|MESSAGING)_/.test(name),
    );
    const past = { ...Object.fromEntries(quick), SEND_SPACING_SECONDS: "0", LOG_LEVEL: "error" };
    await makeHistory(() => product.start(past, clock.now), sandbox, clock, token);
  }
  for (const [at, one] of urls.entries()) await instances?.add(one, { ...settings, PORT: String(ports[at]) });
  const service = isShared ? undefined : await product.start(settings);
  const call = createCaller(url, token);
  await using shop = await startShop({ meta: () => sandbox.meta, call });
  // A log that an earlier demo wrote has the links of that demo's shop, at another port.
  const code = `shop${new URL(shop.url).port}`;
  const link = JSON.stringify({ code, target: `${shop.url}/` });
  await call("/api/links/add", link, { "content-type": "application/json" });
  if (!busy) await importList(call, readFileSync(new URL("./recipients.csv", import.meta.url), "utf8"));
  const settingsFile = join(directory, "demo.env");
  writeSettingsFile(settingsFile, settings);
  terminal.out(nextSteps(urls, sandbox.url, token, settingsFile, product.program, busy, `${url}/l/${code}`));
  if (service !== undefined) return await service.untilStopped();
  if (!signal.aborted) await once(signal, "abort");
  return 0;
}

function nextSteps(
  urls: readonly string[],
  sandboxUrl: string,
  token: string,
  settings: string,
  program: string,
  busy: boolean,
  shop: string,
) {
  const [url, ...others] = urls;
  const isAlone = others.length === 0;
  return `
reachlog  ${url}      (console: sign in with the token)
${others.map((other) => `          ${other}      (the same log, by another instance)\n`).join("")}sandbox   ${sandboxUrl}      (what the networks received; faults to switch on${isAlone ? "" : "; instances to kill"})
token     ${token}

1. ${isAlone ? `Look at ${busy ? "six busy weeks" : "two weeks of outreach, which the service has made on a clock set back"}:\n     ${url}/results` : `Authorize the sandbox's X account in a browser:\n     ${url}/social/auth`}
2. See which recipients a run would write to, then let it run:
     curl -s -X POST ${url}/social/run -H 'content-type: application/json' -d '{"dry_run":true}'
     curl -s -X POST ${url}/social/run -H 'prefer: wait=60'
3. Post a click, and see in the sandbox that it is dispatched to three networks:
     curl -s ${url}/api/tracking/event -H 'content-type: application/json' -d '{"event":"click","domain":"go.example","short_code":"welcome","original_url":"https://shop.example/?fbclid=abc","ip":"203.0.113.7","user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}'
   Click and buy in a browser, and see one PageView and one Purchase at Meta:
     ${shop}
4. Ask what happened, in another terminal of this folder with the demo's settings:
     set -a; . '${settings}'; set +a
     ${program} audit tail
     ${program} deliveries channels
     ${program} outreach preview

Stop with Ctrl-C.
`;
}

/** File mode that lets only the owner read the settings file, which contains the demo's token. */
const OWNER_ONLY = 0o600;

/**
 * Writes settings in a form that a shell and `bun --env-file` read alike: one a line, each value in single quotes.
 * Replaces the file of an earlier demo.
 */
function writeSettingsFile(file: string, settings: DemoSettings): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name}='${fit(name, value)}'\n`);
  rmSync(file, { force: true });
  writeFileSync(file, lines.join(""), { mode: OWNER_ONLY, flag: "wx" });
}

/**
 * Returns the value. Throws if it has a quote or a line break, which a shell and `bun --env-file` do not escape in the
 * same way.
 */
function fit(name: string, value: string): string {
  if (/['\n\r]/.test(value)) throw new Error(`${name} holds a quote or a line break: it is to be a file of its own`);
  return value;
}
