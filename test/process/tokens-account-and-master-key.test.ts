// These tests start the service or commands as processes.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  authorize,
  exported,
  openInstallation,
  stop,
  TOKEN,
  until,
  type Installation,
  type ListeningService,
} from "../harness/process.ts";

let world: Installation;
beforeEach(async () => {
  world = await openInstallation();
});
afterEach(() => world[Symbol.asyncDispose]());

const GUARDED = "/api/messaging";

async function statusWith(service: ListeningService, token: string): Promise<number> {
  const response = await service.post(GUARDED, { text: "hello" }, { authorization: `Bearer ${token}` });
  await response.body?.cancel();
  return response.status;
}

test("a caller's token is replaced under load without a refused request", async () => {
  world.env["API_TOKENS_FILE"] = join(world.directory, "tokens");
  const made = async (): Promise<{ id: string; token: string }> =>
    JSON.parse((await world.command("token", "new", "web", "--add", "--json")).out) as { id: string; token: string };
  const old = await made();
  const service = await world.host();
  const statuses: number[] = [];
  let current = old.token;
  const over = new AbortController();
  const load = (async () => {
    while (!over.signal.aborted) {
      const response = await service.get("/social/health", { headers: { authorization: `Bearer ${current}` } });
      await response.body?.cancel();
      statuses.push(response.status);
    }
  })();
  const next = await made();
  await until(
    async () => service.log(),
    (log) => log.includes("API_TOKENS_FILE was loaded"),
  );
  expect([await statusWith(service, old.token), await statusWith(service, next.token)]).toEqual([200, 200]);
  current = next.token;
  await world.command("token", "remove", old.id);
  await until(
    async () => service.log().match(/API_TOKENS_FILE was loaded/g)?.length ?? 0,
    (times) => times === 2,
  );
  over.abort();
  await load;
  expect([statuses.length > 10, statuses.filter((status) => status !== 200)]).toEqual([true, []]);
  expect([await statusWith(service, old.token), await statusWith(service, next.token)]).toEqual([401, 200]);
  const { out: listed } = await world.command("token", "list", "--json");
  const { tokens: uses } = JSON.parse(listed) as { tokens: { name: string; id: string; last_used: string | null }[] };
  const today = new Date().toISOString().slice(0, 10);
  expect(uses).toMatchObject([
    { name: "tester", last_used: null },
    { id: next.id, last_used: today },
  ]);
  await stop(service);
  const used = (await exported(world)).filter(({ type }) => type === "TokenUsed").map(({ data }) => data["token_id"]);
  expect(used).toEqual([old.id, next.id]);
  for (const { token } of [old, next]) expect(service.log()).not.toContain(token);
});

test("wrong tokens are recorded as one event without the tokens", async () => {
  const service = await world.host();
  const guesses = Array.from({ length: 14 }, (_, index) => `guess-number-${index}-canary`);
  const statuses: number[] = [];
  for (const guess of guesses) statuses.push(await statusWith(service, guess));
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429, 429, 429]);
  // The right token works, although the failed guesses came from the same address.
  expect(await statusWith(service, TOKEN)).toBe(200);
  await stop(service);
  const failures = (await exported(world)).filter(({ type }) => type === "AuthenticationsFailed");
  expect(failures.map(({ data }) => data)).toEqual([
    expect.objectContaining({ address: "127.0.0.1", addresses: 1, failed: 10, turned_away: 4 }),
  ]);
  const log = readFileSync(join(world.directory, "reachlog.sqlite")).toString("latin1");
  for (const text of [log, service.log(), JSON.stringify(failures)]) expect(text).not.toContain("canary");
});

test.each([
  [{ HOST: "0.0.0.0", API_TOKENS: "" }, "API_TOKENS: missing, but HOST 0.0.0.0 can be reached by others"],
  [{ HOST: "0.0.0.0", API_TOKENS: "," }, "API_TOKENS: holds no token"],
  [{ HOST: "0.0.0.0" }, "X_ACCOUNT: missing"],
  [{ AUTH_POLICY: "strict", API_TOKENS: "" }, "API_TOKENS: missing, but AUTH_POLICY is strict"],
  [{ AUTH_POLICY: "strict" }, "X_ACCOUNT: missing"],
  [{ AUTH_POLICY: "none" }, "AUTH_POLICY"],
  [
    { AUTH_POLICY: "strict", X_ACCOUNT: "we", OPEN_ROUTES: "/api/messaging" },
    "OPEN_ROUTES: /api/messaging always needs a token",
  ],
  [{ API_TOKENS_FILE: "gone" }, 'gone" cannot be read (ENOENT)'],
] as Record<string, string>[][] as [Record<string, string>, string][])(
  "with %j the service exits with the reason",
  async (more, why) => {
    const { code, err } = await world.commandWith(more, "serve");
    expect([code, err]).toEqual([78, expect.stringContaining(why)]);
  },
);

test("with X_ACCOUNT only that account can be linked", async () => {
  const service = await world.host({ AUTH_POLICY: "strict", X_ACCOUNT: "acme_team" });
  expect((await authorize(service, world.sandbox, "someone_else")).answer.status).toBe(403);
  expect((await authorize(service, world.sandbox, "acme_team")).answer.status).toBe(200);
});

test("a wrong or missing master key prevents the start and changes nothing", async () => {
  const first = await world.host();
  await authorize(first, world.sandbox);
  await stop(first);
  const place = (name: string) => join(world.directory, `reachlog${name}`);
  const key = readFileSync(place(".key"), "utf8");
  const kept = [".vault.sqlite", ".keys.sqlite"].map((name) => readFileSync(place(name)));
  const refused = async (more: Record<string, string>, why: string): Promise<void> => {
    const { code, err } = await world.commandWith(more, "serve");
    expect([code, err]).toEqual([78, expect.stringContaining(why)]);
    expect([".vault.sqlite", ".keys.sqlite"].map((name) => readFileSync(place(name)))).toEqual(kept);
  };
  await refused({ REACHLOG_KEY: "f".repeat(64) }, "was encrypted with the key");
  writeFileSync(place(".key"), "no key");
  await refused({}, "holds no key");
  rmSync(place(".key"));
  await refused({}, "reachlog.key is gone");
  writeFileSync(place(".key"), key, { mode: 0o600 });
  const again = await world.host();
  expect(await (await again.get("/social/health")).json()).toMatchObject({ authorized: true });
  expect((await again.get("/social/me")).status).toBe(200);
});

test("the master key is rotated only while the service is stopped, and the grant still works", async () => {
  const first = await world.host();
  await authorize(first, world.sandbox);
  const running = await world.command("key", "rotate");
  expect([running.code, running.err]).toEqual([75, expect.stringContaining("another service owns this log")]);
  await stop(first);
  expect((await world.command("key", "rotate")).code).toBe(0);
  const again = await world.host();
  expect((await again.get("/social/me")).status).toBe(200);
  await stop(again);
  rmSync(join(world.directory, "reachlog.vault.sqlite"));
  const lost = await world.host().catch(String);
  expect(lost).toContain("people who were suppressed and erased would not be recognised");
  const accepted = await world.host({}, ["--accept-lost-keys"]);
  expect((await accepted.get("/api/health")).status).toBe(200);
});
