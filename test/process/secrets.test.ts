// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { isWhole } from "../harness/case-count.ts";
import { serve, type TestServer } from "../harness/in-process/local-test-servers.ts";
import { until, type Running } from "../harness/process.ts";
import { askInAllWays, authorizeInAllWays, runInAllWays, type Callers } from "./secrets/call-service-in-all-ways.ts";
import {
  canary,
  huntedFileKeys,
  huntedKeys,
  huntedToken,
  huntGrants,
  secureSandbox,
  settingsFor,
  wrongSettings,
  type Canaries,
} from "./secrets/canaries.ts";
import { misformed, runEveryCommand } from "./secrets/run-every-command.ts";
import { findSecrets, hunted } from "./secrets/search-bytes-for-secrets.ts";
import { openWatchedWorld, type WatchedWorld } from "./secrets/watched-world.ts";

const FAULTY_RUNTIME = join(import.meta.dirname, "secrets/programs/faulty-runtime.ts");

const PEOPLE = "username,name,basis\nada_builds,Ada,opt_in\ngrace_codes,Grace,opt_in\nclosed_carl,Carl,opt_in\n";

/** A world in which every secret is unique to this run. */
async function openSecretWorld(more: Record<string, string> = {}) {
  const world = await openWatchedWorld({ x: { dmLimit: 1_000 } });
  const canaries: Canaries = [];
  const [token, hashed] = [canary(), canary()];
  canaries.push(...huntedToken("a caller's token", token), hunted("a caller's hashed token", hashed));
  secureSandbox(world.sandbox, canaries);
  huntGrants(world.sandbox, canaries);
  const sha256 = new Bun.CryptoHasher("sha256").update(hashed).digest("hex");
  const tokens = { API_TOKENS: `tester:${token},other:sha256:${sha256}`, LOG_LEVEL: "debug" };
  Object.assign(world.env, settingsFor(world.sandbox), tokens, more);
  return { world, canaries, token };
}

/** Starts a webhook receiver whose answers repeat all that it received. It accepts only every other event. */
function openReceiver({ world, canaries }: Pick<Callers, "world" | "canaries">): TestServer {
  const [path, key] = [canary(), randomBytes(32)];
  const encoded = key.toString("base64");
  canaries.push(hunted("the webhook's address", path), hunted("the webhook's key", key), hunted("its base64", encoded));
  const receiver = serve(({ body, headers }, nth) => {
    return new Response(JSON.stringify([body, ...headers]), { status: nth % 2 === 0 ? 200 : 500 });
  });
  const types = "LinkClicked,NotificationRequested,MessageRequested,DirectMessageSent,RunFinished";
  const webhook = { WEBHOOK_URL: `${receiver.url}/${path}`, WEBHOOK_SECRET: `whsec_${encoded}`, WEBHOOK_EVENTS: types };
  Object.assign(world.env, webhook);
  return receiver;
}

/** Minimum number of bytes that the test must have searched for secrets; with fewer it looks in the wrong place. */
const BYTES_MIN = 300_000;

function expectNothingFound(world: WatchedWorld, canaries: Canaries): void {
  expect(world.written.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeGreaterThan(BYTES_MIN);
  expect(findSecrets(canaries, world.written)).toEqual([]);
}

/** Adds a token and rotates the master key by commands. The new token is shown once, the new key never. */
async function exchangeKeyAndTokens(callers: Callers): Promise<void> {
  const { world, canaries } = callers;
  const masterKey = randomBytes(32);
  canaries.push(...huntedKeys("the next master key", masterKey));
  const next = masterKey.toString("base64");
  Object.assign(world.env, { REACHLOG_KEY_NEXT: next, API_TOKENS_FILE: world.file("tokens", "") });
  const made = world.start(["token", "new", "third", "--add", "--json"]);
  const { token } = (await new Response(made.stdout).json()) as { token: string };
  canaries.push(hunted("a token that was made", token));
  expect(await world.execute("key", "rotate")).toMatchObject({ code: 0 });
  Object.assign(world.env, { REACHLOG_KEY: next, REACHLOG_KEY_NEXT: "" });
  const service = await world.serve();
  await askInAllWays({ ...callers, masterKey, token }, service);
  await world.execute("token", "list");
  await world.end(service, "SIGTERM");
  await world.keepFiles("after the exchange");
}

/** Expects that every secret was used in a request, because a secret that is not used cannot leak. */
function expectEverythingUsed({ sandbox: { x, meta, slack, telegram } }: WatchedWorld): void {
  expect(new Set(x.grants.kept.map(({ grant_type }) => grant_type)).size).toBe(2);
  for (const { total } of [x.messages, meta.events, slack.messages, telegram.messages])
    expect(total).toBeGreaterThan(0);
}

test("no file, output, response or process list of a used and killed service contains a secret", async () => {
  const masterKey = randomBytes(32);
  const secret = await openSecretWorld({ REACHLOG_KEY: masterKey.toString("base64") });
  await using world = secret.world;
  const { canaries } = secret;
  canaries.push(...huntedKeys("the master key", masterKey));
  const callers: Callers = { ...secret, masterKey };
  await using receiver = openReceiver(secret);

  await world.execute("recipients", "import", world.file("people.csv", PEOPLE));
  const first = await world.serve();
  await authorizeInAllWays(callers, first);
  await runInAllWays(callers, first);
  await world.keepFiles("in use");
  // The service soon only answers 429 to a caller with wrong tokens, so these calls come last.
  await askInAllWays(callers, first);
  expectEverythingUsed(world);
  expect(receiver.requests.length).toBeGreaterThan(1);
  await world.end(first, "SIGKILL");
  await world.keepFiles("after a kill");

  const second = await world.serve();
  await authorizeInAllWays(callers, second);
  expect(await runEveryCommand(world)).toBeGreaterThan(30);
  await world.end(second, "SIGTERM");
  await world.keepFiles("after the end");
  canaries.push(...(await huntedFileKeys(logFiles(join(world.directory, "reachlog.sqlite")), masterKey)));
  await exchangeKeyAndTokens(callers);
  expectNothingFound(world, canaries);
});

/**
 * Pairs of providers for chat and messaging, one for each run of the service. `networks/secrecy.test.ts` tests the
 * client of each provider.
 */
const PROVIDERS = [
  ["slack", "telegram"],
  ["discord", "line"],
  ["google_chat", "whatsapp"],
  ["teams", "telegram"],
] as const;

test.each(PROVIDERS.slice(0, isWhole ? undefined : 1))(
  "no secret leaks if %s and %s refuse it or runtime errors repeat it",
  async (chat, messaging) => {
    const masterKey = randomBytes(32);
    const secret = await openSecretWorld({ REACHLOG_KEY: masterKey.toString("hex") });
    await using world = secret.world;
    const { canaries } = secret;
    const callers: Callers = { ...secret, masterKey };
    canaries.push(...huntedKeys("the master key", masterKey));
    const right = settingsFor(world.sandbox, { chat, messaging });
    Object.assign(world.env, right);

    await useBriefly(callers, await world.serve());
    const broken = await world.serve({}, [`--preload=${FAULTY_RUNTIME}`]);
    await askInAllWays(callers, broken);
    await giveItAnUncaughtFault(broken);
    await world.end(broken, "SIGTERM");
    Object.assign(world.env, wrongSettings(right, canaries));
    await useBriefly(callers, await world.serve());
    await world.execute("doctor", "--online");
    await world.execute("account", "unlink");
    Object.assign(world.env, right, { REACHLOG_KEY: randomBytes(32).toString("hex") });
    await world.execute("serve");
    await world.execute("doctor");
    await world.keepFiles("after the end");
    expectNothingFound(world, canaries);
  },
);

async function useBriefly(callers: Callers, service: Running): Promise<void> {
  await authorizeInAllWays(callers, service);
  await askInAllWays(callers, service);
  await callers.world.end(service, "SIGTERM");
}

/** Raises an uncaught fault; the service logs it in one line and keeps running. */
async function giveItAnUncaughtFault(service: Running): Promise<void> {
  service.process.kill("SIGUSR2");
  const line = await until(
    () =>
      Promise.resolve(
        service
          .log()
          .split("\n")
          .find((part) => part.includes("thrown on purpose")),
      ),
    (found) => found !== undefined,
  );
  expect(JSON.parse(line ?? "")).toMatchObject({ level: "error", error: "Error: thrown on purpose" });
  expect((await service.get("/api/health")).status).toBe(200);
}

test("the master key from a key file is in that file only", async () => {
  const secret = await openSecretWorld();
  await using world = secret.world;
  await world.end(await world.serve(), "SIGTERM");
  const file = join(world.directory, "reachlog.key");
  const masterKey = Buffer.from(readFileSync(file, "utf8").trim(), "hex");
  const service = await world.serve();
  await useBriefly({ ...secret, masterKey }, service);
  await world.execute("backup", join(world.directory, "copy"));
  await world.keepFiles("after the end");
  const elsewhere = world.written.filter(({ where }) => !where.startsWith("reachlog.key "));
  expect(elsewhere.length).toBe(world.written.length - 1);
  expect(findSecrets([...secret.canaries, ...huntedKeys("the master key", masterKey)], elsewhere)).toEqual([]);
});

test("malformed settings are reported without their values", async () => {
  const secret = canary();
  await using world = await openWatchedWorld();
  const right = { ...world.env };
  for (const [name, value] of Object.entries(misformed(secret))) {
    setEnvironment(world, { ...right, [name]: value });
    const { code, err } = await world.command("doctor", "--online");
    expect([name, code, err]).toEqual([name, 78, expect.stringContaining(name)]);
  }
  for (const name of ["TELEGRAM_BOT_TOKE", "WHATSAPP_TOKEN"]) {
    setEnvironment(world, { ...right, [name]: secret });
    expect((await world.command("doctor")).out).toContain(`${name} is no setting`);
  }
  expect(findSecrets([hunted("a setting", secret)], world.written)).toEqual([]);
});

function setEnvironment({ env }: WatchedWorld, wanted: Record<string, string>): void {
  for (const name of Object.keys(env)) delete env[name];
  Object.assign(env, wanted);
}
