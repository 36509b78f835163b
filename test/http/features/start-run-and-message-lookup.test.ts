// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { ask, openApp, post, REPORT, slugOf, problemIn } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

const { run_id, ...rest } = REPORT;

async function authorized() {
  const world = await openApp();
  await world.authorize();
  return world;
}

const run = (world: Awaited<ReturnType<typeof openApp>>, body: unknown = {}, prefer?: string) =>
  post(world.app, "/social/run", body, prefer === undefined ? {} : { headers: { prefer } });

test("a started run is answered with its id and the remaining quota", async () => {
  await using world = await authorized();
  const response = await run(world);
  expect([response.status, await response.json()]).toEqual([202, { run_id, dry_run: false, status: "started" }]);
  expect(response.headers.get("ratelimit-policy")).toBe('"dm-day";q=100;w=86400');
  expect(response.headers.get("ratelimit")).toBe('"dm-day";r=37;t=57600');
});

test.each(["wait=10", "respond-async, wait=10", "wait = 10; x=y", 'wait="10"', "WAIT=300", "wait=999999"])(
  "with Prefer: %s the response holds the finished run",
  async (prefer) => {
    await using world = await authorized();
    const response = await run(world, {}, prefer);
    expect([response.status, await response.json()]).toEqual([
      200,
      { run_id, dry_run: false, status: "finished", ...rest },
    ]);
  },
);

test.each(["wait=0", "wait", "wait=soon", "wait=1.5", "await=10", "wait=-1", ""])(
  "with Prefer: %j the response does not wait for the run",
  async (prefer) => {
    await using world = await authorized();
    expect((await run(world, {}, prefer)).status).toBe(202);
  },
);

test.each([
  [undefined, false, null],
  ["wait=soon", false, null],
  ["respond-async, wait=10", false, "wait=10"],
  ["wait=0", false, "wait=0"],
  ["wait=999999", false, "wait=300"],
  ["wait=10", true, null],
])("with Prefer: %s and dry_run %p, Preference-Applied is %s", async (prefer, dry_run, applied) => {
  await using world = await authorized();
  const response = await run(world, { dry_run }, prefer);
  expect(response.status).toBeLessThan(300);
  expect(response.headers.get("preference-applied")).toBe(applied);
});

test("a caller that waited receives the quota that remains after the run", async () => {
  await using world = await authorized();
  const done = Promise.resolve().then(() => {
    world.used = 66;
    return REPORT;
  });
  world.triggered = { kind: "started", run_id, done };
  expect((await run(world, {}, "wait=10")).headers.get("ratelimit")).toBe('"dm-day";r=34;t=57600');
});

test("a run that is not finished in time, or failed, is answered as started", async () => {
  await using world = await authorized();
  world.triggered = { kind: "started", run_id, done: Promise.resolve(undefined) };
  expect((await run(world, {}, "wait=300")).status).toBe(202);
  world.triggered = { kind: "started", run_id, done: new Promise(() => {}) };
  expect((await run(world, {}, "wait=1")).status).toBe(202);
});

test("a dry run always waits, and shows planned sends and skips", async () => {
  await using world = await openApp({ template: "Hi. Reply stop for no more messages." });
  await world.authorize();
  const preview = {
    reason: "completed" as const,
    would_send: [{ recipient: { id: "7", username: "ann" }, text: "Hi", variant: "A" }],
    would_skip: [{ recipient: { username: "bob" }, reason: "no_consent" as const }],
    variants: [{ variant: "A", text: "Hi" }],
    estimate: { ...REPORT.usage, sends: 4, usd: 0.12 },
  };
  world.triggered = { kind: "started", run_id, done: Promise.resolve({ ...REPORT, preview }) };
  const response = await run(world, { dry_run: true }, "wait=0");
  const { reason: _reason, ...shown } = preview;
  expect([response.status, await response.json()]).toEqual([
    200,
    { run_id, dry_run: true, status: "finished", ...rest, ...shown },
  ]);
  expect(world.triggers).toMatchObject([{ dryRun: true }]);
});

test.each([
  ["Hi {{name}}", [expect.stringContaining("Add {{optout}}")]],
  ["Hi {{name}}. Reply stop for no more messages.", undefined],
])("a dry run of the message %j has notes %j", async (template, notes) => {
  await using world = await openApp({ template });
  await world.authorize();
  const preview = { reason: "completed" as const, would_send: [], would_skip: [], variants: [] };
  const done = Promise.resolve({ ...REPORT, preview: { ...preview, estimate: REPORT.usage } });
  world.triggered = { kind: "started", run_id, done };
  const answer = (await (await run(world, { dry_run: true })).json()) as { notes?: unknown };
  expect(answer.notes).toEqual(notes);
});

test.each([
  ["Hi {{name}}", "Hi. Reply stop for no more messages.", undefined],
  ["Hi. Reply stop for no more messages.", "Hi {{name}}", [expect.stringContaining("Add {{optout}}")]],
])("a dry run of a campaign judges not %j but the campaign's own text %j", async (template, text, notes) => {
  await using world = await openApp({ template });
  await world.authorize();
  await world.append("outreach", { type: "CampaignCreated", data: { name: "spring", text, audience: {} } });
  const preview = { reason: "completed" as const, would_send: [], would_skip: [], variants: [] };
  const done = Promise.resolve({ ...REPORT, preview: { ...preview, estimate: REPORT.usage } });
  world.triggered = { kind: "started", run_id, done };
  const answer = (await (await run(world, { dry_run: true, campaign: "spring" })).json()) as { notes?: unknown };
  expect(answer.notes).toEqual(notes);
});

test("a dry run notes a placeholder for which no imported recipient has a value", async () => {
  await using world = await openApp({ template: "Hi {{nmae}}, reply STOP" });
  await world.authorize();
  await world.append("outreach", addedOf({ username: "ann" }));
  const preview = { reason: "completed" as const, would_send: [], would_skip: [], variants: [] };
  const done = Promise.resolve({ ...REPORT, preview: { ...preview, estimate: REPORT.usage } });
  world.triggered = { kind: "started", run_id, done };
  const answer = (await (await run(world, { dry_run: true })).json()) as { notes?: unknown };
  expect(answer.notes).toEqual(["no imported recipient has nmae; import it or give a fallback {{field|text}}"]);
});

test("a dry run that fails is answered with 500", async () => {
  await using world = await authorized();
  world.triggered = { kind: "started", run_id, done: Promise.resolve(undefined) };
  expect(await problemIn(await run(world, { dry_run: true }))).toBe("500 internal-error");
});

test("a run starts with the caller's limit and selection, and reports them", async () => {
  await using world = await authorized();
  const done = Promise.resolve({ ...REPORT, reason: "window_closed" as const, until: "2026-03-02T09:00:00.000Z" });
  world.triggered = { kind: "started", run_id, done };
  const selection = { limit: 20, variant: "B", basis: "dm_first", source: "list" };
  const response = await run(world, selection, "wait=10");
  expect(world.triggers).toMatchObject([{ dryRun: false, selection }]);
  const until = "2026-03-02T09:00:00.000Z";
  expect(await response.json()).toMatchObject({ ...selection, reason: "window_closed", until });
});

describe("a run for named recipients", () => {
  const expected = [
    { recipient: { id: "7", username: "ann" }, expected: "message" as const },
    { recipient: { username: "bob" }, expected: "no_message" as const, reason: "suppressed" as const },
  ];

  test("is answered with what is expected of each, whether it starts or they join one", async () => {
    await using world = await authorized();
    const body = { recipients: ["7000000000000000001", "@bob"] };
    world.triggered = { kind: "started", run_id, done: Promise.resolve(undefined), expected };
    const started = await run(world, body);
    const answer = { run_id, dry_run: false, status: "started", recipients: expected };
    expect([started.status, await started.json()]).toEqual([202, { ...answer, joined: false }]);
    world.triggered = { kind: "joined", run_id, expected };
    const joined = await run(world, body, "wait=300");
    expect([joined.status, await joined.json()]).toEqual([202, { ...answer, joined: true }]);
    expect(joined.headers.get("preference-applied")).toBeNull();
    const recipients = [{ id: "7000000000000000001" }, { username: "bob" }];
    expect(world.triggers.map((request) => request.recipients)).toEqual([recipients, recipients]);
  });

  test.each([[[]], [["no such name"]], [Array.from({ length: 101 }, (_, nth) => `user_${nth}`)]])(
    "is refused for %j",
    async (recipients) => {
      await using world = await authorized();
      expect((await run(world, { recipients })).status).toBe(422);
      expect(world.triggers).toEqual([]);
    },
  );
});

describe("a run is refused", () => {
  test("with the id of the run in progress", async () => {
    await using world = await authorized();
    world.triggered = { kind: "running", run_id: "run-0" };
    const response = await run(world);
    expect([response.status, await response.json()]).toMatchObject([409, { run_id: "run-0" }]);
    expect(response.headers.get("ratelimit")).toBe('"dm-day";r=37;t=57600');
  });

  test("with Retry-After if the day's quota is used up", async () => {
    await using world = await authorized();
    world.triggered = { kind: "daily_limit_reached" };
    const response = await run(world);
    expect(response.headers.get("retry-after")).toBe("57600");
    expect(response.headers.get("ratelimit-policy")).toBe('"dm-day";q=100;w=86400');
    expect(await problemIn(response)).toBe("429 daily-limit-reached");
  });

  test("with the opening time if the sending window is closed", async () => {
    await using world = await authorized();
    world.triggered = { kind: "window_closed", opensAt: world.now + 3_600_000 };
    const response = await run(world);
    expect(response.headers.get("retry-after")).toBe("3600");
    const opens_at = new Date(world.now + 3_600_000).toISOString();
    expect(await response.clone().json()).toMatchObject({ opens_at });
    expect(await problemIn(response)).toBe("429 window-closed");
  });

  test.each([
    [{ variant: "C" }, "/variant", "The template has no variant C. Choose A or B."],
    [{ source: "followers" }, "/source", "followers is not in RECIPIENT_SOURCES (list)."],
  ])("with the configured values if %j is not configured", async (body, path, message) => {
    await using world = await authorized();
    const response = await run(world, body);
    expect(await response.clone().json()).toMatchObject({ errors: [{ path, message }] });
    expect([await problemIn(response), world.triggers]).toEqual(["422 unusable-selection", []]);
  });

  test.each(["", "June ", "a\u0007b"])("with the name %j in quotes if no campaign has it", async (campaign) => {
    await using world = await authorized();
    world.triggered = { kind: "unknown_campaign", campaign };
    const errors = [{ path: "/campaign", message: `No campaign is called ${JSON.stringify(campaign)}.` }];
    expect(await (await run(world, { campaign })).json()).toMatchObject({ status: 422, errors });
  });

  test("with the fault of a campaign's text that the settings cannot send", async () => {
    await using world = await authorized();
    const data = { name: "spring", text: "Hi {{optout}}", audience: {} };
    await world.append("outreach", { type: "CampaignCreated", data });
    world.triggered = { kind: "unusable_text", campaign: "spring", fault: "line 1, column 4: no" };
    const response = await run(world, { campaign: "spring" });
    const message = "The settings cannot send the text of the campaign spring: line 1, column 4: no.";
    expect(await response.clone().json()).toMatchObject({ errors: [{ path: "/campaign", message }] });
    expect([await problemIn(response), world.triggers.length]).toEqual(["422 unusable-selection", 1]);
  });

  test("with the skew and the remedy if the clocks differ", async () => {
    await using world = await authorized();
    world.triggered = { kind: "clock_skewed", skewMs: 2 * 3_600_000 };
    const response = await run(world);
    expect(((await response.clone().json()) as { detail: string }).detail).toBe(
      "No run starts: this machine's clock is 2 h ahead of the log's; correct the wrong one of the two, with NTP, and runs start again by themselves; if this machine's clock is right, say so with reachlog clock-corrected.",
    );
    expect(await problemIn(response)).toBe("503 clock-skewed");
  });

  test("with the address to authorize at if no account is authorized", async () => {
    await using world = await openApp();
    const response = await run(world);
    expect(response.headers.get("www-authenticate")).toContain("/social/auth");
    expect(await problemIn(response)).toBe("401 not-authorized");
    expect(world.triggers).toEqual([]);
  });

  test("if the grant has just died", async () => {
    await using world = await authorized();
    world.triggered = { kind: "not_authorized" };
    expect(await problemIn(await run(world))).toBe("401 not-authorized");
  });

  test("if there is no template", async () => {
    await using world = await openApp({ hasTemplate: false });
    await world.authorize();
    expect(await problemIn(await run(world))).toBe("503 no-message-template");
  });

  test("if X is not configured", async () => {
    await using world = await openApp({ hasX: false });
    await world.authorize();
    expect((await run(world)).status).toBe(401);
    expect(await slugOf(await ask(world.app, "/social/auth"))).toBe("network-not-configured");
    expect(await slugOf(await ask(world.app, "/social/callback"))).toBe("network-not-configured");
  });
});
