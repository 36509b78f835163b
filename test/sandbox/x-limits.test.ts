// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { authorized, callX, personId } from "./call-simulated-x.ts";

const QUARTER_HOUR_MS = 15 * 60_000;

describe("the sandbox's rate limits of X", () => {
  let sandbox: Sandbox;
  let access: string;
  beforeEach(async () => {
    sandbox = await startSandbox();
    access = (await authorized(sandbox)).access_token;
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const send = (username: string, text: string): Promise<Response> =>
    callX(sandbox, `/dm_conversations/with/${personId(sandbox, username)}/messages`, access, { text });
  const header = (answer: Response, name: string): number => Number(answer.headers.get(name) ?? Number.NaN);

  test("allow 15 messages, refused ones included, in 15 minutes, then answer 429", async () => {
    const closed = await send("closed_carl", "x");
    expect([closed.status, header(closed, "x-rate-limit-remaining")]).toEqual([403, 14]);
    for (let sent = 0; sent < 14; sent++) expect((await send("ada_builds", String(sent))).status).toBe(201);
    const limited = await send("ada_builds", "one more");
    expect([limited.status, await limited.json()]).toEqual([
      429,
      { title: "Too Many Requests", detail: "Too Many Requests", type: "about:blank", status: 429 },
    ]);
    expect([header(limited, "x-rate-limit-limit"), header(limited, "x-rate-limit-remaining")]).toEqual([15, 0]);
    expect(header(limited, "x-user-limit-24hour-remaining")).toBe(1_425);
    sandbox.clock.advance(QUARTER_HOUR_MS);
    expect((await send("ada_builds", "later")).status).toBe(201);
    expect(sandbox.x.accepted.get(personId(sandbox, "ada_builds"))).toBe(15);
  });

  test("take reset and Date header from the same moved clock", async () => {
    sandbox.clock.advance(3 * 24 * 3_600_000);
    access = (await authorized(sandbox)).access_token;
    const sent = await send("ada_builds", "x");
    const date = Date.parse(sent.headers.get("date") ?? "");
    expect(Math.abs(date - sandbox.clock.now())).toBeLessThan(5_000);
    const wait = header(sent, "x-rate-limit-reset") * 1000 - date;
    expect(wait).toBeGreaterThan(QUARTER_HOUR_MS - 5_000);
    expect(wait).toBeLessThan(QUARTER_HOUR_MS + 5_000);
  });

  test("follow a clock that runs faster", async () => {
    const real = { now: 1_800_000_000_000 };
    await using fast = await startSandbox({ clock: () => real.now });
    const before = fast.clock.now();
    fast.clock.setSpeed(60);
    real.now += 15_000;
    expect(fast.clock.now() - before).toBe(QUARTER_HOUR_MS);
  });

  test("keep a day's limit across the windows of that day", async () => {
    Object.assign(sandbox.x.limits, { dmLimit: 2, dmDayLimit: 3 });
    for (const status of [201, 201, 429]) expect((await send("ada_builds", "x")).status).toBe(status);
    sandbox.clock.advance(QUARTER_HOUR_MS);
    for (const status of [201, 429]) expect((await send("ada_builds", "x")).status).toBe(status);
    sandbox.clock.advance(24 * 3_600_000);
    access = (await authorized(sandbox)).access_token;
    expect((await send("ada_builds", "x")).status).toBe(201);
  });

  test("count both ways of reading messages together, apart from sends", async () => {
    for (let read = 0; read < 15; read++) expect((await callX(sandbox, "/dm_events", access)).status).toBe(200);
    const path = `/dm_conversations/with/${personId(sandbox, "ada_builds")}/dm_events`;
    expect((await callX(sandbox, path, access)).status).toBe(429);
    expect((await send("ada_builds", "x")).status).toBe(201);
  });

  test("omit their headers if told to", async () => {
    sandbox.x.limits.rateHeaders = false;
    const sent = await send("ada_builds", "x");
    expect([sent.status, sent.headers.get("x-rate-limit-remaining")]).toEqual([201, null]);
  });

  test.each([
    ["credits_depleted", 402, "CreditsDepleted", "https://api.twitter.com/2/problems/credits"],
    ["usage_capped", 429, "UsageCapExceeded", "https://api.twitter.com/2/problems/usage-capped"],
    ["sender_restricted", 403, "Forbidden", "about:blank"],
    ["over_capacity", 503, "Service Unavailable", "about:blank"],
    ["client_forbidden", 403, "Client Forbidden", "https://api.twitter.com/2/problems/client-forbidden"],
    ["token_revoked", 401, "Unauthorized", "about:blank"],
  ] as const)("leave tokens available during the fault %s, answered with %p", async (kind, status, title, type) => {
    sandbox.faults.add({ network: "x", kind });
    const answer = await send("ada_builds", "x");
    expect([answer.status, await answer.json()]).toMatchObject([status, { title, type }]);
    expect((await authorized(sandbox)).access_token).toBeString();
    const me = await callX(sandbox, "/users/me", access);
    expect(me.status).toBe(kind === "sender_restricted" ? 200 : status);
  });

  test("reset a 429 from a fault by the sandbox's clock", async () => {
    sandbox.clock.advance(3_600_000);
    sandbox.faults.add({ network: "x", kind: "429", retryAfter: 90, path: "/messages" });
    const reset = header(await send("ada_builds", "x"), "x-rate-limit-reset") * 1000;
    expect(Math.abs(reset - sandbox.clock.now() - 90_000)).toBeLessThan(5_000);
  });
});
