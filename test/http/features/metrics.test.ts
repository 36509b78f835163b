// These tests run parts of the service inside the test process.
import { USUAL_CHANNELS } from "../../harness/sample-click.ts";
import { expect, test } from "bun:test";
import { Registry } from "prom-client";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { observeLog } from "../../../src/metrics/log-lag-and-instances.ts";
import { parseExposition, type Sample } from "../../metrics/parse-prometheus-text.ts";
import { ask, GOOD, openApp, post, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";
import { addedOf, clickOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

async function samplesOf({ app }: Pick<AppHarness, "app">): Promise<readonly Sample[]> {
  const response = await ask(app, "/metrics", { token: TOKEN });
  expect([response.status, response.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  return parseExposition(await response.text());
}

/** Returns the value of the only sample with this name and these labels. */
function valueOf(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  const fits = samples.filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  expect(fits).toHaveLength(1);
  return fits[0]?.value ?? NaN;
}

const LINK = "link-go.example/spring";
const click: NewEvent = clickOf({ short_code: "spring", channels: [...USUAL_CHANNELS] });

test("metrics require a token", async () => {
  await using world = await openApp({ authPolicy: "spec" });
  expect((await ask(world.app, "/metrics")).status).toBe(401);
});

test("responses are counted by endpoint and status, not by path", async () => {
  await using world = await openApp();
  for (const id of ["ada", "ben", "carl"]) await ask(world.app, `/people/${id}`);
  for (const path of ["/nowhere/1", "/nowhere/2"]) await ask(world.app, path);
  await post(world.app, "/api/tracking/event", GOOD["/api/tracking/event"]);
  await post(world.app, "/api/tracking/event", {});
  const counted = (await samplesOf(world)).filter(({ name }) => name === "reachlog_http_answers_total");
  expect(counted.map(({ labels, value }) => [labels["endpoint"], labels["status"], value])).toEqual([
    ["GET /people/:id", "401", 3],
    ["none", "404", 2],
    ["POST /api/tracking/event", "202", 1],
    ["POST /api/tracking/event", "422", 1],
  ]);
});

test("messages are counted by campaign once there is one besides default", async () => {
  await using world = await openApp();
  const recipient = { id: "1", username: "ada" };
  const sent = (campaign?: string): NewEvent => {
    const data = { attempt_id: `${campaign}`, run_id: "r", recipient, message_id: "m", settled_by: "answer" } as const;
    return { type: "DirectMessageSent", data: campaign === undefined ? data : { ...data, campaign } };
  };
  const name = "reachlog_campaign_messages";
  await world.append("outreach", sent());
  expect((await samplesOf(world)).filter((sample) => sample.name === name)).toEqual([]);
  await world.append("outreach", sent("spring"), sent("spring"));
  const samples = await samplesOf(world);
  const counts = ["default", "spring"].map((campaign) => valueOf(samples, name, { campaign, outcome: "sent" }));
  expect([...counts, valueOf(samples, name, { campaign: "spring", outcome: "failed" })]).toEqual([1, 2, 0]);
});

test("pending dispatches and the oldest one's age are shown for each lane", async () => {
  await using world = await openApp();
  const lastEventAt = () => Date.parse(world.projector.time ?? "");
  await world.append(LINK, click, click);
  const clickedAt = lastEventAt();
  await world.append("requests", {
    type: "NotificationRequested",
    data: { message: "m", service: "s", level: "info" },
  });
  world.now = lastEventAt() + 90_000;
  const waiting = await samplesOf(world);
  const pending = (channel: string, lane: string) => valueOf(waiting, "reachlog_outbox_pending", { channel, lane });
  const oldest = (channel: string, lane: string) =>
    valueOf(waiting, "reachlog_outbox_oldest_seconds", { channel, lane });
  expect([pending("ads", "clicks"), pending("ads", "direct"), pending("chat", "direct")]).toEqual([2, 0, 1]);
  expect([oldest("ads", "clicks"), oldest("ads", "direct"), oldest("chat", "direct")]).toEqual([
    (world.now - clickedAt) / 1_000,
    0,
    90,
  ]);
});

test("suspension, circuit and dead letters of a channel are shown", async () => {
  await using world = await openApp({ channels: ["ads", "chat"], circuits: { ads: "half_open" } });
  await world.append(LINK, click);
  const before = await samplesOf(world);
  const refused = { attempt: 1, refused: true, detail: "no" };
  const outcome = {
    channel: "ads",
    lane: "clicks",
    low_watermark: 2,
    requests: [{ sources: [1], ...refused }],
  } as const;
  await world.append("delivery-ads", { type: "DispatchAbandoned", data: outcome as never });
  const suspended = { channel: "chat", network: "Slack", detail: "archived", credential: "" } as const;
  await world.append("delivery-chat", { type: "ChannelSuspended", data: suspended });
  const after = await samplesOf(world);
  const both = (name: string, channel: string) => [
    valueOf(before, name, { channel }),
    valueOf(after, name, { channel }),
  ];
  expect(both("reachlog_dead_letters", "ads")).toEqual([0, 1]);
  expect(both("reachlog_channel_suspended", "chat")).toEqual([0, 1]);
  const circuits = after.filter(({ name, value }) => name === "reachlog_channel_circuit" && value === 1);
  expect(circuits.map(({ labels }) => labels)).toEqual([
    { channel: "ads", state: "half_open" },
    { channel: "chat", state: "closed" },
  ]);
});

test("quota, account and run are shown", async () => {
  await using world = await openApp();
  await world.authorize();
  await world.append("outreach", { type: "RunStarted", data: { run_id: "run-1", dry_run: false } });
  const during = await samplesOf(world);
  const figures = ["quota_limit", "quota_used", "run_running", "account_linked", "account_authorized"];
  expect(figures.map((name) => valueOf(during, `reachlog_${name}`))).toEqual([100, 63, 1, 1, 1]);
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  await world.append("outreach", {
    type: "RunFinished",
    data: { run_id: "run-1", reason: "credits_depleted", ...counts },
  });
  const after = await samplesOf(world);
  expect(valueOf(after, "reachlog_run_running")).toBe(0);
  expect(valueOf(after, "reachlog_runs_ended_total", { reason: "credits_depleted" })).toBe(1);
  expect(valueOf(after, "reachlog_runs_ended_total", { reason: "completed" })).toBe(0);
});

test("the number of instances and the roles held here are shown", async () => {
  await using world = await openApp({ channels: ["chat"] });
  const [own] = world.deps.instances();
  const take = (name: string, holder = "another") => world.store.leases.acquire(name, { holder, ttlMs: 60_000 });
  await take("dispatcher-chat", own?.id);
  await take("retention");
  const samples = await samplesOf(world);
  const held = samples.filter(({ name }) => name === "reachlog_role_held");
  expect(held.map(({ labels, value }) => [labels["role"], value])).toEqual([
    ["dispatcher-chat", 1],
    ["retention", 0],
    ["signed-heads", 0],
  ]);
  expect([valueOf(samples, "reachlog_instances"), valueOf(samples, "reachlog_log_away_seconds")]).toEqual([1, 0]);
});

test("only the metrics that need the log are missing while it is unreachable", async () => {
  const away = async () => Promise.reject(new Error("out of reach"));
  await using world = await openApp({
    store: (store) => ({ ...store, head: away, leases: { ...store.leases, list: away } }),
  });
  const response = await ask(world.app, "/metrics", { token: TOKEN });
  const text = await response.text();
  expect(response.status).toBe(200);
  expect(text).toContain("\nreachlog_log_position Nan\n");
  expect(text).not.toContain("\nreachlog_role_held{");
  expect(text).toContain("\nreachlog_quota_limit 100\n");
});

test("the duration of the log's outage is shown", async () => {
  await using world = await openApp({ awaySince: Date.parse("2026-03-01T07:58:30.000Z") });
  expect(valueOf(await samplesOf(world), "reachlog_log_away_seconds")).toBe(90);
});

test("the number of events not yet cosigned is shown if there is a witness", async () => {
  await using world = await openApp();
  expect((await samplesOf(world)).some(({ name }) => name.startsWith("reachlog_witness"))).toBe(false);
  const { store, projector } = world;
  const registry = new Registry();
  const load = { streams: 0 };
  const times = { awaySince: () => undefined, skewMs: () => 0, clock: () => 0 };
  observeLog(registry, { ...times, store, projector, load, cosigned: async () => 2 });
  await world.append("outreach", ...Array.from({ length: 5 }, () => addedOf({ username: "ada" })));
  const { position } = await store.head();
  expect(await registry.metrics()).toContain(`\nreachlog_witness_lag_events ${position - 2}\n`);
});

test("no metric contains a caller's input", async () => {
  await using world = await openApp();
  await post(world.app, "/api/tracking/event", { ...GOOD["/api/tracking/event"], short_code: "a-secret-code" });
  await ask(world.app, "/people/a-secret-person");
  await ask(world.app, "/a-secret-path", { method: "SECRET" });
  const text = await (await ask(world.app, "/metrics", { token: TOKEN })).text();
  expect(text.match(/secret/gi)).toBeNull();
});

test("the clock's skew against the log is shown", async () => {
  await using world = await openApp({ skewMs: -7_200_000 });
  expect(valueOf(await samplesOf(world), "reachlog_clock_skew_seconds")).toBe(-7_200);
});

test("the time until expiry is shown for each expiring token", async () => {
  await using world = await openApp();
  const token = (name: string, sha256: string) => ({ name, sha256: sha256.padEnd(64, "0") });
  const { list, replace } = world.deps.authentication;
  replace([...list(), { ...token("web", "a"), expiresAt: world.now + 90_000 }, { ...token("web", "b"), expiresAt: 0 }]);
  const figures = async () =>
    (await samplesOf(world))
      .filter(({ name }) => name === "reachlog_token_expires_seconds")
      .map(({ labels, value }) => [labels, value]);
  expect(await figures()).toEqual([
    [{ name: "web", token: "a00000000000" }, 90],
    [{ name: "web", token: "b00000000000" }, -world.now / 1_000],
  ]);
  replace(list().slice(0, 1));
  expect(await figures()).toEqual([]);
});

test("a named webhook has metrics while it is subscribed or has dead letters", async () => {
  await using world = await openApp();
  const subscription = { channel: "webhook-crm" as const, types: ["LinkClicked"], receiver: "x" };
  await world.append("webhook-crm", { type: "WebhookSubscribed", data: subscription });
  await world.append(LINK, click);
  const figures = async () => {
    const samples = (await samplesOf(world)).filter(({ labels }) => labels["channel"] === "webhook-crm");
    const shown = ["reachlog_outbox_pending", "reachlog_dead_letters"];
    return samples.filter(({ name }) => shown.includes(name)).map(({ labels, value }) => [labels["lane"], value]);
  };
  expect(await figures()).toEqual([
    ["direct", 0],
    ["events", 1],
    [undefined, 0],
  ]);
  const outcome = {
    channel: "webhook-crm",
    lane: "events",
    low_watermark: 3,
    requests: [{ sources: [2], attempt: 1, detail: "gone", refused: true }],
  };
  await world.append("delivery-webhook-crm", { type: "DispatchAbandoned", data: outcome as never });
  await world.append("webhook-crm", { type: "WebhookUnsubscribed", data: { channel: "webhook-crm" } });
  expect((await figures()).at(-1)).toEqual([undefined, 1]);
  const [letter] = await world.events("LinkClicked");
  const discarded = { event_id: letter?.id ?? "", source: 2, channel: "webhook-crm", why: "over" } as const;
  await world.append("requests", { type: "DispatchDiscarded", data: discarded });
  expect(await figures()).toEqual([]);
});
