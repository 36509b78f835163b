// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { ask, INSTANCE, openApp, REPORT } from "../../harness/in-process/app.ts";

const { run_id } = REPORT;

test("/social/health shows the run in progress, the account and the quota", async () => {
  await using world = await openApp();
  const health = async () => (await ask(world.app, "/social/health")).json();
  const quota = { limit: 100, used: 63, remaining: 37, resets_at: "2026-03-02T00:00:00.000Z" };
  expect(await health()).toEqual({ status: "ok", running: false, run: null, authorized: false, quota });

  await world.authorize();
  await world.append("outreach", { type: "RunStarted", data: { run_id, dry_run: false } });
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  const run = {
    id: run_id,
    dry_run: false,
    started_at: world.projector.time,
    ...counts,
    waiting: null,
    stop_requested_at: null,
  };
  expect(await health()).toEqual({ status: "ok", running: true, run, authorized: true, quota });

  const waiting = { reason: "rate_limited" as const, until: new Date(world.now + 60_000).toISOString() };
  await world.append("outreach", { type: "RunPaused", data: { run_id, ...waiting } });
  expect(await health()).toMatchObject({ run: { waiting } });
  world.now += 60_000;
  expect(await health()).toMatchObject({ run: { waiting: null } });
  await world.append("outreach", { type: "RunStopRequested", data: { run_id } });
  expect(await health()).toMatchObject({ run: { stop_requested_at: world.projector.time } });

  await world.append("account", {
    type: "TokenRefreshFailed",
    data: { user_id: "1", reason: "invalid_request", dead: true },
  });
  expect(await health()).toMatchObject({ status: "degraded", authorized: false });
});

test("/api/health shows version, position and channels, and answers 503 while the log refuses appends", async () => {
  await using world = await openApp({ channels: ["chat"] });
  const off = { configured: false, pending: 0, circuit: null, suspended: null };
  const body = {
    status: "ok",
    version: "1.2.3",
    log: { position: 0 },
    instances: [expect.objectContaining({ id: INSTANCE.id })],
    roles: {},
    channels: {
      ads: off,
      chat: { configured: true, pending: 0, circuit: "closed", suspended: null },
      messaging: off,
      webhook: off,
    },
  };
  const response = await ask(world.app, "/api/health");
  expect([response.status, await response.json()]).toEqual([200, body]);

  await using broken = await openApp({ isWritable: false });
  const unwell = await broken.app.handle(
    new Request("http://localhost/api/health", { headers: { host: "localhost" } }),
  );
  expect([unwell.status, await unwell.json()]).toMatchObject([503, { status: "degraded" }]);
});

test("health shows a subscribed named webhook, and degrades while it is suspended", async () => {
  await using world = await openApp({ channels: ["webhook-crm"] });
  await world.append("webhook-crm", {
    type: "WebhookSubscribed",
    data: { channel: "webhook-crm", types: ["RunFinished"], receiver: "x" },
  });
  const health = async () => (await (await ask(world.app, "/api/health")).json()) as { channels: object };
  const well = { configured: true, pending: 0, circuit: "closed", suspended: null };
  expect(await health()).toMatchObject({ status: "ok", channels: { "webhook-crm": well } });
  await world.append("delivery-webhook-crm", {
    type: "ChannelSuspended",
    data: { channel: "webhook-crm", network: "standard_webhooks", detail: "gone", credential: "" },
  });
  expect(await health()).toMatchObject({ status: "degraded", channels: { "webhook-crm": { suspended: {} } } });
});

const SUSPENDED = {
  type: "ChannelSuspended",
  data: { channel: "chat", network: "fake chat", detail: "channel_is_archived", credential: "" },
} as const;

test("a suspended channel degrades health until it is resumed", async () => {
  await using world = await openApp();
  const health = async () => {
    const response = await ask(world.app, "/api/health");
    const { status, channels } = (await response.json()) as { status: string; channels: { chat: object } };
    return [response.status, status, channels.chat];
  };
  await world.append("delivery-chat", SUSPENDED);
  const suspended = { since: world.projector.time, detail: "channel_is_archived" };
  expect(await health()).toEqual([200, "degraded", { configured: true, pending: 0, circuit: "closed", suspended }]);
  await world.append("delivery-chat", { type: "ChannelResumed", data: { channel: "chat", why: "by_hand" } });
  expect(await health()).toMatchObject([200, "ok", { suspended: null }]);
});

test.each([
  ["open", "degraded"],
  ["half_open", "degraded"],
  ["closed", "ok"],
] as const)("with a circuit in the state %s, health is %s", async (circuit, status) => {
  await using world = await openApp({ circuits: { messaging: circuit } });
  const response = await ask(world.app, "/api/health");
  expect([response.status, await response.json()]).toMatchObject([
    200,
    { status, channels: { messaging: { circuit } } },
  ]);
});

test("health names the instances of the log, its own first", async () => {
  await using world = await openApp();
  const other = { ...INSTANCE, id: "0195a0f0-0000-7000-8000-000000000002", version: "1.2.4", configuration: "other" };
  const app = world.restart({ instances: () => [INSTANCE, other] });
  const { instances } = (await (await ask(app, "/api/health")).json()) as { instances: object[] };
  expect(instances).toEqual([
    { id: INSTANCE.id, version: "1.2.3", started_at: INSTANCE.started_at, configuration: "0123456789ab" },
    { id: other.id, version: "1.2.4", started_at: INSTANCE.started_at, configuration: "other" },
  ]);
});

test("/social/health is degraded while the log is unreachable", async () => {
  await using world = await openApp({ awaySince: 0 });
  expect(await (await ask(world.app, "/social/health")).json()).toMatchObject({ status: "degraded" });
});

test("health names the holder of each role, and no other lease", async () => {
  await using world = await openApp();
  const { leases } = world.store;
  const one = { holder: INSTANCE.id, ttlMs: 60_000 };
  await leases.acquire("dispatcher-chat", one);
  await leases.acquire("run", { holder: `${OTHER}/the run`, ttlMs: 60_000 });
  await leases.acquire("answer-of-a-request", one);
  const { roles } = (await (await ask(world.app, "/api/health")).json()) as { roles: object };
  expect(roles).toEqual({ "dispatcher-chat": INSTANCE.id, run: OTHER });
});

const OTHER = "01890a5d-ac96-774b-bcce-b302099a8057";
