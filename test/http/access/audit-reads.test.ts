// These tests run parts of the service inside the test process.
import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { newDatabase, AppendInDoubt, StoreFull, StoreUnavailable } from "eventstore-lite/testing";
import { makeEvent, type DataOf, type Recorded } from "../../../events/event-types-and-codec.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { SAME_READ_MS } from "../../../src/http/access/audit-reads.ts";
import { describeEndpoints } from "../../../src/http/endpoints.ts";
import { createLogger } from "../../../src/platform/logger.ts";
import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { openLog } from "../../../src/privacy/open-log.ts";
import { startService } from "../../../src/service/service.ts";
import { showHistoryCommand } from "../../harness/in-process/operation-commands.ts";
import { capture } from "../../harness/capture-command.ts";
import { ask, openApp, post, problemIn, REPORT, TOKEN } from "../../harness/in-process/app.ts";
import { temporaryFolder } from "../../harness/temporary-folder.ts";

type Read = DataOf<"PersonalDataRead">;

/**
 * Personal data that the test puts into the log. It must appear neither in the event that records a read, nor
 * unencrypted in the stored log.
 */
const PLANTED = { username: "planted_ada", name: "Plantagenet", company: "Planted & Sons" };
const CLICKED = { ip: "203.0.113.77", user_agent: "Planted-Agent/7.0" };
const NEEDLES = [...Object.values(PLANTED), ...Object.values(CLICKED)];
const ADA = { username: PLANTED.username };
const [RUN, DRY_RUN] = ["01a1fd59-3b3a-7515-964c-67ff53c10ed1", "01a1fd59-3b3a-7515-964c-67ff53c10ed2"];
const SECRETS = { reader: "a-token-that-reads", narrow: "a-token-that-tracks" };

const toEntry = (name: string, secret: string, scope: string) =>
  `${name}:sha256:${createHash("sha256").update(secret).digest("hex")}:scope=${scope}`;

/** A request to each endpoint that reads personal data, and the event that the log must contain for it. */
const READS: Readonly<Record<string, readonly [path: string, Read]>> = {
  "GET /social/preview": ["/social/preview?limit=0", { resource: "preview", filters: ["limit"] }],
  "POST /api/what-if": ["/api/what-if", { resource: "preview" }],
  "POST /console/what-if": ["/console/what-if", { resource: "preview" }],
  "GET /": ["/", { resource: "overview" }],
  "GET /attention": ["/attention", { resource: "overview" }],
  "GET /runs/:run_id": [`/runs/${RUN}?from=1`, { resource: "run", filters: ["from"] }],
  "GET /runs/dry/:run_id": [`/runs/dry/${DRY_RUN}?from=1`, { resource: "preview", filters: ["from"] }],
  "GET /people": [
    `/people?search=${PLANTED.name}&status=open&unknown=${PLANTED.username}`,
    { resource: "recipients", filters: ["search", "status"], records: 1 },
  ],
  "GET /people/:id": [`/people/@${PLANTED.username}`, { resource: "recipient", recipient: ADA }],
  "GET /links/:domain/:short_code": ["/links/go.example/spring", { resource: "link" }],
  "GET /deliveries": ["/deliveries?channel=chat", { resource: "deliveries", filters: ["channel"] }],
  "GET /campaigns/:name": ["/campaigns/default", { resource: "results" }],
  "GET /results": ["/results?by=day", { resource: "results", filters: ["by"] }],
  "GET /activity": [
    `/activity?recipient=@${PLANTED.username}`,
    { resource: "log", recipient: ADA, filters: ["recipient"] },
  ],
  "GET /activity/:position": [
    "/activity/ADDED?projection=contacts",
    { resource: "event", recipient: ADA, filters: ["projection"] },
  ],
  "GET /find": [`/find?q=${PLANTED.username}`, { resource: "search", filters: ["q"], records: 1 }],
  "GET /social/results": [
    "/social/results?by=source&format=csv",
    { resource: "results", filters: ["by", "format"], records: 0 },
  ],
  "GET /api/audit/history": [
    `/api/audit/history?subject=@${PLANTED.username}&limit=1`,
    { resource: "recipient", filters: ["subject", "limit"], recipient: ADA, records: 1 },
  ],
  "GET /api/audit/change": [
    "/api/audit/change?event=ADDED&projection=contacts",
    { resource: "event", filters: ["event", "projection"], recipient: ADA, records: 1 },
  ],
  "GET /api/deliveries/show": [
    "/api/deliveries/show?event_id=CLICKED",
    { resource: "deliveries", filters: ["event_id"], records: 1 },
  ],
  "GET /social/recipients": ["/social/recipients?limit=5", { resource: "recipients", filters: ["limit"], records: 1 }],
  "GET /social/recipients/show": [
    `/social/recipients/show?recipient=@${PLANTED.username}`,
    { resource: "recipient", filters: ["recipient"], recipient: ADA, records: 1 },
  ],
  "GET /social/recipients/held": ["/social/recipients/held", { resource: "recipients", records: 0 }],
  "GET /social/suppressions": ["/social/suppressions?hashed=true", { resource: "suppressions", filters: ["hashed"] }],
  "GET /api/audit/export": [
    `/api/audit/export?recipient=${PLANTED.username}&format=csv`,
    { resource: "export", recipient: ADA, filters: ["recipient", "format"] },
  ],
  "GET /events": ["/events?type=LinkClicked", { resource: "stream", filters: ["type"] }],
};

const toMethod = (endpoint: string): string => endpoint.split(" ")[0]!;

/** Body and headers of a request to the service. */
interface Sent {
  readonly body?: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Starts a service with a recipient and a click in its log. The result has helpers that make requests and read the log.
 */
async function openWorld(place: Record<string, string>, more: Record<string, string>) {
  const tokens = [
    toEntry("reader", SECRETS.reader, "read+recipients+track"),
    toEntry("narrow", SECRETS.narrow, "track"),
  ];
  // The webhook's receiver cannot be reached, so the click has a dispatch that stays pending.
  const webhook = {
    WEBHOOK_URL: "http://127.0.0.1:9/",
    WEBHOOK_SECRET: `whsec_${btoa("x".repeat(32))}`,
    WEBHOOK_EVENTS: "LinkClicked",
  };
  const settings = { PORT: "0", AUTH_POLICY: "strict", API_TOKENS: tokens.join(","), MESSAGE_TEMPLATE: "Hi" };
  const env = { ...settings, ...webhook, ...place, ...more };
  const config = loadConfig(env, () => "");
  await using opening = new AsyncDisposableStack();
  const service = opening.use(
    await startService(
      config,
      createLogger("error", () => {}, Date.now),
    ),
  );
  const store = opening.use(await openLog(config));
  const send = (path: string, body: object) =>
    fetch(service.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${SECRETS.reader}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  expect((await send("/social/recipients", [{ ...PLANTED, basis: "opt_in" }])).status).toBe(200);
  const click = { event: "click", domain: "go.example", short_code: "spring", original_url: "https://shop.example/" };
  expect((await send("/api/tracking/event", { ...click, ...CLICKED })).status).toBe(202);
  await store.append("outreach", [
    makeEvent("RunStarted", makeId(), { run_id: RUN, dry_run: false }, {}),
    makeEvent("RunStarted", makeId(), { run_id: DRY_RUN, dry_run: true }, {}),
    makeEvent("DryRunFinished", makeId(), { run_id: DRY_RUN, reason: "completed", would_send: 0, would_skip: 0 }, {}),
  ]);
  await service.projector.until((await store.head()).position);
  const signIn = await fetch(`${service.url}/session`, {
    method: "POST",
    body: new URLSearchParams({ token: SECRETS.reader }),
    redirect: "manual",
  });
  const cookie = (signIn.headers.get("set-cookie") ?? "").split(";")[0]!;
  const [added] = await Array.fromAsync(store.read({ types: ["RecipientAdded"] }));
  const [clicked] = await Array.fromAsync(store.read({ types: ["LinkClicked"] }));
  /**
   * Returns the body and the headers of a request for a what-if comparison. For an API path the body is JSON. For a
   * console path it is the form of the page, with the token that the page contains.
   */
  const bodyFor = async (path: string, headers: Record<string, string>): Promise<Sent> => {
    if (!path.startsWith("/console/")) return { body: "{}", headers: { "content-type": "application/json" } };
    const page = await (await fetch(`${service.url}/what-if`, { headers })).text();
    const form_token = /name="form_token" value="([^"]+)"/.exec(page)?.[1] ?? "";
    const body = new URLSearchParams({ form_token, back: "/what-if", DAILY_LIMIT: "50" }).toString();
    return { body, headers: { "content-type": "application/x-www-form-urlencoded" } };
  };
  const parts = opening.move();
  return {
    env,
    caughtUp: async () => service.projector.until((await store.head()).position),
    /** Requests the path with these headers of a signed-in browser or of a program. A POST also gets a body. */
    async read(path: string, given: Record<string, string>, method = "GET") {
      const leaving = new AbortController();
      const sent: Sent = method === "POST" ? await bodyFor(path, given) : { headers: {} };
      const headers = { ...given, ...sent.headers };
      const url =
        service.url + path.replace("ADDED", String(added?.position)).replace("CLICKED", String(clicked?.position));
      const answer = await fetch(url, { ...sent, method, headers, redirect: "manual", signal: leaving.signal });
      const { status } = answer;
      if (answer.headers.get("content-type") !== "text/event-stream") return { status, text: await answer.text() };
      leaving.abort();
      return { status, text: "" };
    },
    headersFor: (endpoint: string): Record<string, string> =>
      /^\w+ \/(?:api|social|events)/.test(endpoint) ? { authorization: `Bearer ${SECRETS.reader}` } : { cookie },
    reads: async () =>
      (await Array.fromAsync(store.read({ types: ["PersonalDataRead"] }))) as Recorded<"PersonalDataRead">[],
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

type World = Awaited<ReturnType<typeof openWorld>>;

/**
 * Places for a log. Each entry creates a new place: the settings for a log there, and a function that returns all that
 * is stored there as text.
 */
const PLACES = {
  "in a file": async () => {
    const folder = temporaryFolder();
    return {
      place: { DATABASE_URL: `sqlite:${folder.file("log.sqlite")}` },
      stored: async () =>
        readdirSync(folder.path)
          .map((name) => readFileSync(folder.file(name), "latin1"))
          .join("\n"),
    };
  },
  "on a server": async () => {
    const url = await newDatabase();
    return {
      place: { DATABASE_URL: url, REACHLOG_KEY: "01".repeat(32) },
      async stored() {
        await using sql = new SQL(url);
        const tables = await sql`select format('%I.%I', table_schema, table_name) as name from information_schema.tables
          where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`;
        const rows = tables.map(({ name }: { name: string }) => sql.unsafe(`select t::text as row from ${name} t`));
        return JSON.stringify(await Promise.all(rows));
      },
    };
  },
} as const;

/** True if the text contains the searched name, plain or as the hexadecimal digits in which a database writes bytes. */
const isIn = (text: string, needle: string): boolean =>
  text.includes(needle) || text.includes(Buffer.from(needle).toString("hex"));

test("each endpoint of the scope `read` declares whether it reads personal data, and is tested", () => {
  const reading = describeEndpoints().filter(({ scope }) => scope === "read");
  expect(reading.filter(({ personalRead }) => personalRead === undefined)).toEqual([]);
  const declared = reading.filter(({ personalRead }) => personalRead !== false);
  const names = declared.map(({ method, path }) => `${method} ${path}`);
  expect(names.toSorted()).toEqual(Object.keys(READS).toSorted());
  for (const { method, path, personalRead } of declared) {
    expect([path, READS[`${method} ${path}`]![1].resource]).toEqual([path, personalRead as Read["resource"]]);
  }
  const others = reading.filter(({ personalRead }) => personalRead === false).map(({ path }) => path);
  expect(others.toSorted()).toEqual(
    ["/metrics", "/social/me", "/social/stats", "/api/audit/verify", "/api/audit/head", "/api/audit/proof/:event"]
      .concat([
        "/api/deliveries",
        "/api/deliveries/channels",
        "/api/deliveries/lag",
        "/api/tokens",
        "/api/links",
        "/campaigns",
        "/deliveries/decide",
        "/links",
        "/people/import",
        "/runs",
        "/social/account",
        "/social/campaigns",
        "/social/campaigns/count",
        "/social/campaigns/show",
        "/social/quota",
        "/social/runs",
        "/api/clicks",
        "/setup",
        "/what-if",
      ])
      .toSorted(),
  );
});

describe.each(Object.entries(PLACES))("a log %s", (_where, openPlace) => {
  describe("with AUDIT_READS=on", () => {
    let world: World;
    let stored: () => Promise<string>;
    beforeAll(async () => {
      const opened = await openPlace();
      stored = opened.stored;
      world = await openWorld(opened.place, { AUDIT_READS: "on" });
    });
    afterAll(() => world[Symbol.asyncDispose]());

    test.each(Object.keys(READS))(
      "a read of %s is one event with its caller, without personal data",
      async (endpoint) => {
        const [path, wanted] = READS[endpoint]!;
        const before = (await world.reads()).length;
        expect((await world.read(path, world.headersFor(endpoint), toMethod(endpoint))).status).toBe(
          path.startsWith("/find") ? 303 : 200,
        );
        const events = (await world.reads()).slice(before);
        expect(events.map(({ data, meta }) => [data, meta.caller])).toEqual([[wanted, "reader"]]);
        const { recipient: _, ...rest } = events[0]!.data;
        const shown = JSON.stringify({ ...events[0], data: rest });
        expect(NEEDLES.filter((needle) => isIn(shown, needle))).toEqual([]);
      },
    );

    test.each(Object.keys(READS))("a refused read of %s is no event", async (endpoint) => {
      const [path] = READS[endpoint]!;
      const before = (await world.reads()).length;
      const method = toMethod(endpoint);
      expect((await world.read(path, {}, method)).status).toBe(401);
      expect((await world.read(path, { authorization: `Bearer ${SECRETS.narrow}` }, method)).status).toBe(403);
      expect((await world.reads()).length).toBe(before);
    });

    test("a response without personal data is no event", async () => {
      const before = (await world.reads()).length;
      const { cookie = "" } = world.headersFor("GET /");
      const token = world.headersFor("GET /events");
      expect((await world.read("/people/@a_stranger", { cookie })).status).toBe(404);
      expect((await world.read("/activity/999999", { cookie })).status).toBe(404);
      expect((await world.read("/setup", { cookie })).status).toBe(200);
      expect((await world.read("/events?only=position", token)).status).toBe(200);
      expect((await world.read("/api/audit/export", token, "HEAD")).status).toBe(200);
      expect((await world.read("/events", token, "HEAD")).status).toBe(200);
      expect((await world.read("/social/suppressions", token, "HEAD")).status).toBe(200);
      expect((await world.read("/people", { cookie }, "HEAD")).status).toBe(200);
      expect((await world.read("/people/@planted_ada", { cookie }, "HEAD")).status).toBe(200);
      expect((await world.read("/api/audit/export?from=never", token)).status).toBe(422);
      expect((await world.read("/metrics", token)).status).toBe(200);
      expect((await world.reads()).length).toBe(before);
    });

    test("a page with a wrong as_of shows current data, and is one event", async () => {
      const before = (await world.reads()).length;
      expect((await world.read("/people?as_of=never", world.headersFor("GET /people"))).status).toBe(400);
      expect((await world.reads()).slice(before).map(({ data }) => data)).toEqual([
        { resource: "recipients", filters: ["as_of"], records: 1 },
      ]);
    });

    test("the recipient's page and history name the reader", async () => {
      const headers = world.headersFor("GET /people/:id");
      await world.read("/people/@planted_ada", headers);
      const own = (await world.reads()).filter(({ data }) => data.recipient !== undefined);
      await world.caughtUp();
      const { text } = await world.read("/people/@planted_ada", headers);
      const section = /<section[^>]*aria-labelledby="reads".*?<\/section>/s.exec(text)?.[0] ?? "";
      expect([...section.matchAll(/href="\/activity\/(\d+)"/g)].map(([, position]) => Number(position))).toEqual(
        own.map(({ position }) => position).toReversed(),
      );
      expect(section).toContain("<bdi>reader</bdi> read personal data");
      const history = await capture(showHistoryCommand, ["@planted_ada"], { env: world.env });
      expect(history.out).toContain("personal data about @planted_ada was read: the record of one recipient");
    });

    test("no personal data of these events is stored in the clear", async () => {
      const text = await stored();
      expect(isIn(text, "PersonalDataRead")).toBe(true);
      expect(NEEDLES.filter((needle) => isIn(text, needle))).toEqual([]);
    });
  });

  test("records no read with AUDIT_READS=off", async () => {
    const { place } = await openPlace();
    await using world = await openWorld(place, {});
    for (const [endpoint, [path]] of Object.entries(READS)) {
      expect((await world.read(path, world.headersFor(endpoint), toMethod(endpoint))).status).toBeLessThan(400);
    }
    expect(await world.reads()).toEqual([]);
  });
});

/**
 * Opens an app that records reads, with one recipient. Appends to its log wait for `disk.ready` and fail with
 * `disk.fault`.
 */
async function openReads() {
  const disk: { fault?: Error; ready?: Promise<void>; readonly asked: PromiseWithResolvers<void> } = {
    asked: Promise.withResolvers(),
  };
  const world = await openApp({
    auditReads: true,
    store: (store) => ({
      ...store,
      async append(...args) {
        disk.asked.resolve();
        await disk.ready;
        if (disk.fault !== undefined) throw disk.fault;
        return store.append(...args);
      },
    }),
  });
  const added = { recipient: ADA, basis: "opt_in", fields: {}, source: "list" } as const;
  await world.append("outreach", { type: "RecipientAdded", data: added });
  const signedIn = await post(world.app, "/session", `token=${TOKEN}`, {
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  const cookie = (signedIn.headers.get("set-cookie") ?? "").split(";")[0]!;
  return {
    world,
    disk,
    page: (path: string) => ask(world.app, path, { headers: { cookie } }),
    asProgram: (path: string) => ask(world.app, path, { token: TOKEN }),
    count: async () => (await world.events("PersonalDataRead")).length,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

describe("a read that cannot be recorded", () => {
  test.each([new StoreFull(), new StoreUnavailable("away"), new AppendInDoubt("in doubt")])(
    "is refused with 503 and shows no personal data: %s",
    async (fault) => {
      await using reads = await openReads();
      reads.disk.fault = fault;
      for (const path of ["/people", "/people/@planted_ada"]) {
        const answer = await reads.page(path);
        expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "5"]);
        expect(await answer.text()).not.toContain(PLANTED.username);
      }
      expect(await problemIn(await reads.asProgram("/api/audit/export"))).toBe("503 log-unavailable");
      expect(await problemIn(await reads.asProgram("/events"))).toBe("503 log-unavailable");
      expect(reads.world.deps.load.streams).toBe(0);
      expect((await reads.page("/setup")).status).toBe(200);
      delete reads.disk.fault;
      expect((await reads.page("/people")).status).toBe(200);
      expect(await reads.count()).toBe(1);
    },
  );
});

/** An app whose next run is a simulated dry run, with one recipient who would get a message. */
async function openDryRuns() {
  const world = await openApp({ auditReads: true });
  await world.authorize();
  const would_send = [{ recipient: { id: "1001", ...ADA }, text: "Hi", variant: "A" }];
  const preview = { reason: "completed" as const, estimate: REPORT.usage, variants: [], would_send, would_skip: [] };
  world.triggered = { kind: "started", run_id: "run-1", done: Promise.resolve({ ...REPORT, preview }) };
  return world;
}

describe("a response to a write", () => {
  test("is a read for each dry run that lists recipients, also repeated by key", async () => {
    await using world = await openDryRuns();
    const headers = { "idempotency-key": "k1" };
    const start = (body: object) => post(world.app, "/social/run", body, { token: TOKEN, headers });
    for (const count of [1, 2]) {
      expect(await (await start({ dry_run: true })).text()).toContain(PLANTED.username);
      const reads = await world.events("PersonalDataRead");
      expect(reads.map(({ data, meta }) => [data, meta.caller])).toEqual(
        Array.from({ length: count }, () => [{ resource: "preview" }, "tests"]) as never,
      );
    }
  });

  test("is no read if it starts a run", async () => {
    await using world = await openDryRuns();
    const wait = { prefer: "wait=1" };
    expect((await post(world.app, "/social/run", {}, { token: TOKEN, headers: wait })).status).toBe(200);
    expect(await world.events("PersonalDataRead")).toEqual([]);
  });

  test("is a read if it names the recipients of a run, also repeated by key", async () => {
    await using world = await openDryRuns();
    world.triggered = { kind: "joined", run_id: "run-1", expected: [{ recipient: ADA, expected: "message" }] };
    const headers = { "idempotency-key": "k2" };
    for (const count of [1, 2]) {
      const body = { recipients: [PLANTED.username] };
      expect((await post(world.app, "/social/run", body, { token: TOKEN, headers })).status).toBe(202);
      const reads = await world.events("PersonalDataRead");
      expect(reads.map(({ data }) => data)).toEqual(
        Array.from({ length: count }, () => ({ resource: "preview" as const, records: 1 })),
      );
    }
  });

  test("is a read if it shows more of a consent than was sent", async () => {
    await using world = await openApp({ auditReads: true });
    await world.append("outreach", {
      type: "RecipientAdded",
      data: { recipient: ADA, basis: "opt_in", fields: {}, source: "list" },
    });
    for (const _time of [1, 2]) {
      const body = { recipient: PLANTED.username, tracking: "denied" };
      const answer = await post(world.app, "/social/recipients/consent", body, { token: TOKEN });
      expect(await answer.json()).toMatchObject({ basis: "opt_in" });
    }
    const reads = await world.events("PersonalDataRead");
    expect(reads.map(({ data }) => data)).toEqual([{ resource: "recipient", recipient: ADA }]);
  });

  test("is declared as a read for two endpoints", () => {
    const declared = describeEndpoints().filter(({ scope, personalRead }) => scope !== "read" && personalRead);
    expect(declared.map(({ method, path, personalRead }) => `${method} ${path} ${personalRead}`)).toEqual([
      "POST /social/run preview",
      "POST /social/recipients/consent recipient",
    ]);
  });
});

describe("a repeated read", () => {
  test("by the same caller is one event per interval, also for concurrent requests", async () => {
    await using reads = await openReads();
    const { world, page } = reads;
    world.now = SAME_READ_MS * 1_000_000;
    const [one, other] = await Promise.all([page("/people"), page("/people")]);
    expect([one.status, other.status, await reads.count()]).toEqual([200, 200, 1]);
    world.now += SAME_READ_MS - 1;
    await page("/people");
    expect(await reads.count()).toBe(1);
    world.now += 1;
    await page("/people");
    expect(await reads.count()).toBe(2);
  });

  test("is another event for another page, another query or an export", async () => {
    await using reads = await openReads();
    for (const path of ["/people", "/people?search=a", "/people?search=b", "/people/@planted_ada"]) {
      await reads.page(path);
      await reads.page(path);
    }
    expect(await reads.count()).toBe(4);
    for (const _time of [1, 2]) await (await reads.asProgram("/api/audit/export")).text();
    expect(await reads.count()).toBe(6);
    for (const _time of [1, 2]) await (await reads.asProgram("/social/suppressions")).text();
    expect(await reads.count()).toBe(8);
    for (const _time of [1, 2]) await post(reads.world.app, "/api/what-if", {}, { token: TOKEN });
    expect(await reads.count()).toBe(10);
  });

  test("is another event for another caller", async () => {
    await using reads = await openReads();
    const { authentication } = reads.world.deps;
    const sha256 = createHash("sha256").update("the-token-of-bea-000").digest("hex");
    authentication.replace([...authentication.list(), { name: "bea", sha256 }]);
    for (const token of [TOKEN, "the-token-of-bea-000", TOKEN]) {
      expect((await ask(reads.world.app, "/social/results", { token })).status).toBe(200);
    }
    const events = await reads.world.events("PersonalDataRead");
    expect(events.map(({ meta }) => meta.caller)).toEqual(["tests", "bea"]);
  });

  test("is another event after the handle passed to another recipient", async () => {
    await using reads = await openReads();
    const read = async (id: string) => {
      const added = { recipient: { id, username: "handed_on" }, basis: "opt_in", fields: {}, source: "list" } as const;
      await reads.world.append("outreach", { type: "RecipientAdded", data: added });
      await reads.page("/people/@handed_on");
    };
    for (const id of ["1001", "1001", "1002"]) await read(id);
    const events = await reads.world.events("PersonalDataRead");
    expect(events.map(({ data }) => data.recipient?.id)).toEqual(["1001", "1002"]);
  });

  test("is answered only once the first one is durable", async () => {
    await using reads = await openReads();
    const { promise, resolve } = Promise.withResolvers<void>();
    reads.disk.ready = promise;
    let isReady = false;
    const ask = () => reads.page("/people").then(() => isReady);
    const first = ask();
    await reads.disk.asked.promise;
    const seen = [first, ask()];
    // If the second request did not wait until the read of the first one is recorded, it would be answered before these
    // pages.
    for (const _time of [1, 2, 3]) await reads.page("/setup");
    isReady = true;
    resolve();
    expect(await Promise.all(seen)).toEqual([true, true]);
    expect(await reads.count()).toBe(1);
  });

  test("is recorded if the first one was refused", async () => {
    await using reads = await openReads();
    reads.disk.fault = new StoreFull();
    expect((await reads.page("/people")).status).toBe(503);
    delete reads.disk.fault;
    expect([(await reads.page("/people")).status, await reads.count()]).toEqual([200, 1]);
  });

  test("has the caller `anonymous` without a token", async () => {
    await using world = await openApp({ auditReads: true, tokens: false });
    expect((await ask(world.app, "/people")).status).toBe(200);
    const [event] = await world.events("PersonalDataRead");
    expect([event?.data, event?.meta.caller]).toEqual([{ resource: "recipients", records: 0 }, "anonymous"]);
  });
});
