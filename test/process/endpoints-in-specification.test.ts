// These tests start the service or commands as processes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  authorize,
  BEARER,
  exported,
  openInstallation,
  until,
  type ListeningService,
  type Installation,
} from "../harness/process.ts";

/** Tests the success and the errors of every endpoint in the specification, with a real service over real HTTP. */
describe("the specification's table", () => {
  let world: Installation;
  let service: ListeningService;
  const click = {
    event: "click",
    domain: "go.example",
    short_code: "welcome",
    original_url: "https://shop.example/ü?fbclid=AbC&x=%20",
    ip: "203.0.113.7",
    user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  };

  beforeAll(async () => {
    world = await openInstallation();
    world.sandbox.slack.limit = 1_000;
    world.sandbox.telegram.limit = 1_000;
    const csv = "username,name,basis\nada_builds,Ada,opt_in\nclosed_carl,Carl,opt_in\nben_noconsent,Ben,none\n";
    await world.command("recipients", "import", world.file("people.csv", csv));
    service = await world.host();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const problem = async (answer: Response, status: number, slug: string): Promise<Record<string, unknown>> => {
    const body = (await answer.json()) as Record<string, unknown>;
    expect({ status: answer.status, type: body["type"], contentType: answer.headers.get("content-type") }).toEqual({
      status,
      type: `urn:reachlog:problem:${slug}`,
      contentType: "application/problem+json",
    });
    for (const member of ["title", "detail"]) expect(body[member]).toBeString();
    expect(body["status"]).toBe(status);
    expect(body["instance"]).toBe(answer.headers.get("x-request-id"));
    return body;
  };

  test("GET /social/health of a new service shows a full quota and no authorization", async () => {
    const answer = await service.get("/social/health");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      status: "ok",
      running: false,
      run: null,
      authorized: false,
      quota: { limit: 100, used: 0, remaining: 100, resets_at: expect.stringMatching(/T00:00:00\.000Z$/) },
    });
  });

  test("GET /social/me and POST /social/run without an account answer 401 not-authorized", async () => {
    const me = await service.get("/social/me");
    expect(me.headers.get("www-authenticate")).toContain("OAuth");
    expect((await problem(me, 401, "not-authorized"))["detail"]).toContain("/social/auth");
    await problem(await service.post("/social/run"), 401, "not-authorized");
  });

  test("GET /social/auth answers 302 with S256, a state, and a cookie", async () => {
    const answer = await service.get("/social/auth");
    expect(answer.status).toBe(302);
    const parameters = new URL(answer.headers.get("location") ?? "").searchParams;
    expect(Object.fromEntries(parameters)).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      redirect_uri: `${service.url}/social/callback`,
      scope: expect.stringContaining("offline.access"),
    });
    expect((parameters.get("state") ?? "").length).toBeGreaterThanOrEqual(32);
    expect(answer.headers.get("set-cookie")).toMatch(/HttpOnly; SameSite=Lax/);
    expect(answer.headers.get("set-cookie")).toContain("Max-Age=600");
  });

  test("GET /social/callback answers each wrong redirect with 400 and stores nothing", async () => {
    await problem(await service.get("/social/callback"), 400, "authorization-failed");
    await problem(await service.get("/social/callback?state=x&code=y"), 400, "authorization-failed");
    const cancelled = await authorize(service, world.sandbox, "acme_team", "cancel");
    expect(cancelled.callback).toContain("error=access_denied");
    await problem(cancelled.answer, 400, "authorization-failed");

    const start = await service.get("/social/auth");
    const cookie = (start.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const state = new URL(start.headers.get("location") ?? "").searchParams.get("state");
    const headers = { cookie };
    await problem(await service.get("/social/callback?state=other&code=x", { headers }), 400, "authorization-failed");
    await problem(
      await service.get(`/social/callback?state=${state}&code=never-given`, { headers }),
      400,
      "authorization-failed",
    );
    const missing = await authorizeWithout(service, "code");
    await problem(missing, 400, "authorization-failed");
    expect(await (await service.get("/social/health")).json()).toMatchObject({ authorized: false });
  });

  test("GET /social/callback answers 502 and stores nothing if the network is down", async () => {
    world.sandbox.faults.add({ network: "x", kind: "500", path: "/oauth2/token" });
    const { answer } = await authorize(service, world.sandbox);
    world.sandbox.faults.clear();
    await problem(answer, 502, "network-failed");
    expect(await (await service.get("/social/health")).json()).toMatchObject({ authorized: false });
  });

  test("GET /social/callback answers with the user, and refuses a repeat by another browser", async () => {
    const { answer, callback, cookie } = await authorize(service, world.sandbox);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ username: "acme_team", name: "Acme Team", id: expect.any(String) });
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect((await service.get(callback, { headers: { cookie } })).status).toBe(303);
    await problem(await service.get(callback), 400, "authorization-failed");
    expect(await (await service.get("/social/health")).json()).toMatchObject({ authorized: true, status: "ok" });
  });

  test("GET /social/callback answers 403 for another X user, and the first stays linked", async () => {
    const { answer } = await authorize(service, world.sandbox, "someone_else");
    await problem(answer, 403, "wrong-account");
    expect(await (await service.get("/social/me")).json()).toMatchObject({ username: "acme_team" });
  });

  test("GET /social/callback redirects a browser to the console", async () => {
    const start = await service.get("/social/auth");
    const cookie = (start.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const consent = new URL(start.headers.get("location") ?? "");
    const form = new URLSearchParams(consent.search);
    form.set("account", [...world.sandbox.x.people.keys()][0] ?? "");
    form.set("decision", "authorize");
    const decided = await fetch(consent.origin + consent.pathname, { method: "POST", body: form, redirect: "manual" });
    const callback = new URL(decided.headers.get("location") ?? "");
    const answer = await service.get(callback.pathname + callback.search, { headers: { cookie, accept: "text/html" } });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
  });

  test("GET /social/me answers with the user, or 502 if the network is down", async () => {
    expect(await (await service.get("/social/me")).json()).toEqual({
      id: expect.any(String),
      username: "acme_team",
      name: "Acme Team",
    });
    world.sandbox.faults.add({ network: "x", kind: "500", count: 1 });
    await problem(await service.get("/social/me"), 502, "network-failed");
  });

  test("POST /social/run answers 422 for a mistyped dry_run, and sends nothing", async () => {
    const typo = await problem(await service.post("/social/run", { dry_rum: true }), 422, "invalid-request");
    expect(typo["errors"]).toEqual([{ path: "/dry_rum", message: expect.any(String) }]);
    await problem(await service.post("/social/run", { dry_run: "yes" }), 422, "invalid-request");
    expect(world.sandbox.x.accepted.size).toBe(0);
  });

  test("POST /social/run with dry_run answers with the preview and sends nothing", async () => {
    const answer = await service.post("/social/run", { dry_run: true });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      dry_run: true,
      status: "finished",
      would_send: [{ recipient: { username: "ada_builds" }, text: "Hi Ada: https://go.example/welcome", variant: "A" }],
      would_skip: [
        { recipient: { username: "ben_noconsent" }, reason: "no_consent" },
        { recipient: { username: "closed_carl" }, reason: "cannot_receive_dm" },
      ],
    });
    expect(world.sandbox.x.accepted.size).toBe(0);
    expect(await (await service.get("/social/stats")).json()).toMatchObject({ sent: 0, skipped: 0, failed: 0 });
  });

  test("POST /social/run answers 202, and 409 while a run is in progress", async () => {
    world.sandbox.faults.add({ network: "x", kind: "timeout_before", path: "/messages", count: 1 });
    const started = await service.post("/social/run");
    expect(started.status).toBe(202);
    expect(started.headers.get("ratelimit-policy")).toBe('"dm-day";q=100;w=86400');
    expect(started.headers.get("ratelimit")).toMatch(/^"dm-day";r=\d+;t=\d+$/);
    const { run_id } = (await started.json()) as { run_id: string };
    expect(await problem(await service.post("/social/run"), 409, "run-in-progress")).toMatchObject({ run_id });
    expect(await (await service.get("/social/health")).json()).toMatchObject({
      running: true,
      run: { id: run_id, dry_run: false, started_at: expect.any(String), sent: 0 },
    });
  });

  test("a run with an unanswered message that did not arrive ends with one failed", async () => {
    const health = await until(
      async () => (await (await service.get("/social/health")).json()) as { running: boolean },
      ({ running }) => !running,
    );
    expect(health).toMatchObject({ quota: { used: 1, remaining: 99 } });
    expect(await (await service.get("/social/stats")).json()).toMatchObject({ sent: 0, skipped: 2, failed: 1 });
    expect(world.sandbox.x.accepted.size).toBe(0);
  });

  test("POST /social/run with Prefer: wait answers 200 with the finished run", async () => {
    await world.command(
      "recipients",
      "import",
      world.file("more.csv", "handle,name,basis\ngrace_codes,Grace,dm_first\n"),
    );
    const answer = await service.post("/social/run", {}, { prefer: "wait=300" });
    expect(answer.status).toBe(200);
    const finished = (await answer.json()) as Record<string, unknown>;
    expect(finished).toMatchObject({ dry_run: false, status: "finished", reason: "completed" });
    expect(finished).toMatchObject({ sent: 1, skipped: 0, failed: 0, in_doubt: 0 });
    expect(Date.parse(String(finished["finished_at"]))).toBeGreaterThan(Date.parse(String(finished["started_at"])));
  });

  test("GET /social/stats answers with counts, position and time", async () => {
    const stats = (await (await service.get("/social/stats")).json()) as { as_of: Record<string, unknown> };
    expect(stats).toMatchObject({ sent: 1, skipped: 2, failed: 1 });
    expect(stats.as_of["position"]).toBeNumber();
    expect(stats.as_of["time"]).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  });

  test("GET /api/health answers with version, position and channels", async () => {
    const answer = await service.get("/api/health");
    expect(answer.status).toBe(200);
    const channel = { configured: true, pending: expect.any(Number), circuit: "closed", suspended: null };
    expect(await answer.json()).toEqual({
      status: "ok",
      version: expect.any(String),
      log: { position: expect.any(Number) },
      // The field `instances` is not in the product's specification of this answer, which allows additional fields.
      instances: [expect.objectContaining({ version: expect.any(String) })],
      roles: expect.any(Object),
      channels: {
        ads: channel,
        chat: channel,
        messaging: channel,
        webhook: { configured: false, pending: 0, circuit: null, suspended: null },
      },
    });
  });

  test("POST /api/notify answers 200 delivered, 202 pending, or 422", async () => {
    const sent = await service.post("/api/notify", { message: "disk <!channel> full", service: "db", level: "WARN" });
    expect([sent.status, await sent.json()]).toEqual([200, { id: expect.any(String), status: "delivered" }]);
    const arrived = world.sandbox.slack.messages.kept.at(-1)?.text ?? "";
    expect(arrived).toContain("disk");
    expect(arrived).not.toContain("<!channel>");

    world.sandbox.faults.add({ network: "slack", kind: "429", retryAfter: 30, count: 1 });
    const pending = await service.post("/api/notify", { message: "later" });
    expect([pending.status, await pending.json()]).toEqual([202, { id: expect.any(String), status: "pending" }]);

    await problem(await service.post("/api/notify", { message: "   " }), 422, "invalid-request");
    await problem(await service.post("/api/notify", { message: "x", level: "loud" }), 422, "invalid-request");
    await problem(await service.post("/api/notify", { message: "x".repeat(4001) }), 422, "invalid-request");
  });

  test("POST /api/tracking/event answers 202 and reports to Meta, or answers 422 with the field", async () => {
    const before = world.sandbox.meta.events.total;
    const answer = await service.post("/api/tracking/event", click);
    expect(answer.status).toBe(202);
    const { id } = (await answer.json()) as { id: string };
    while (world.sandbox.meta.events.total === before) await Bun.sleep(10);
    expect(world.sandbox.meta.events.kept.at(-1)).toMatchObject({
      event_name: "PageView",
      event_id: id,
      event_source_url: new URL(click.original_url).href,
      user_data: {
        client_ip_address: click.ip,
        client_user_agent: click.user_agent,
        fbc: expect.stringContaining(".AbC"),
      },
    });
    for (const [field, value] of Object.entries({
      event: "",
      domain: "d".repeat(254),
      short_code: "s".repeat(129),
      original_url: "javascript:alert(1)",
      ip: "300.1.1.1",
      user_agent: "u".repeat(1025),
    })) {
      const refused = await problem(
        await service.post("/api/tracking/event", { ...click, [field]: value }),
        422,
        "invalid-request",
      );
      expect(refused["errors"]).toMatchObject([{ path: `/${field}` }]);
    }
  });

  test("POST /api/tracking/test answers 401 without a token, and otherwise each channel's result", async () => {
    const denied = await service.post("/api/tracking/test");
    expect(denied.headers.get("www-authenticate")).toStartWith("Bearer");
    await problem(denied, 401, "unauthorized");
    const answer = await service.post("/api/tracking/test", undefined, BEARER);
    expect(answer.status).toBe(200);
    const delivered = { ok: true, status: "delivered", latency_ms: expect.any(Number) };
    expect(await answer.json()).toMatchObject({ results: { ads: delivered, messaging: delivered } });
    // The network did answer, although with a refusal, so the result includes its latency.
    world.sandbox.faults.add({ network: "telegram", kind: "channel_archived", count: 1 });
    const refused = await service.post("/api/tracking/test", undefined, BEARER);
    const failed = { ok: false, status: "failed", latency_ms: expect.any(Number) };
    expect(await refused.json()).toMatchObject({ results: { ads: delivered, messaging: failed } });
    expect((await service.post("/api/tracking/test", undefined, BEARER)).status).toBe(200);
  });

  test("POST /api/messaging answers 401 before it validates the body, 200, 502, 504 or 422", async () => {
    await problem(await service.post("/api/messaging", { nonsense: true }), 401, "unauthorized");
    await problem(
      await service.post("/api/messaging?access_token=process-test-token-0123456789", { text: "x" }),
      401,
      "unauthorized",
    );
    const sent = await service.post("/api/messaging", { text: "hello" }, BEARER);
    expect([sent.status, await sent.json()]).toEqual([200, { id: expect.any(String), status: "delivered" }]);
    world.sandbox.faults.add({ network: "telegram", kind: "channel_archived", count: 1 });
    await problem(await service.post("/api/messaging", { text: "x" }, BEARER), 502, "delivery-refused");
    // The refusal suspended the channel, which stays so until a channel test arrives at the network.
    await problem(await service.post("/api/messaging", { text: "x" }, BEARER), 502, "delivery-refused");
    expect((await service.post("/api/tracking/test", undefined, BEARER)).status).toBe(200);
    world.sandbox.faults.add({ network: "telegram", kind: "reset_after_delivery", count: 1 });
    await problem(await service.post("/api/messaging", { text: "once" }, BEARER), 504, "delivery-in-doubt");
    await problem(await service.post("/api/messaging", { text: "\n " }, BEARER), 422, "invalid-request");
  });

  test("an invalid request is answered with 400, 404, 405, 413, 415 or 421", async () => {
    const raw = (path: string, body: BodyInit, type: string | undefined, more: RequestInit = {}) =>
      service.get(path, { method: "POST", body, headers: type === undefined ? {} : { "content-type": type }, ...more });
    await problem(await raw("/api/notify", "{", "application/json"), 400, "malformed-request");
    await problem(
      await raw("/api/notify", new Uint8Array([0x22, 0xff, 0x22]), "application/json"),
      400,
      "malformed-request",
    );
    await problem(
      await raw("/api/notify", "message=x", "application/x-www-form-urlencoded"),
      415,
      "unsupported-media-type",
    );
    await problem(
      await raw("/api/notify", `{"message":"${"x".repeat(70_000)}"}`, "application/json"),
      413,
      "body-too-large",
    );
    await problem(await service.get("/api/nothing"), 404, "not-found");
    await problem(await service.get("/social/health/x"), 404, "not-found");
    expect((await service.get("/social/health/")).status).toBe(200);
    const wrong = await service.get("/social/run");
    expect(wrong.headers.get("allow")).toBe("POST");
    await problem(wrong, 405, "method-not-allowed");
    await problem(await service.get("/api/health", { headers: { host: "evil.example" } }), 421, "misdirected-request");
  });

  test("a repeat with the same Idempotency-Key gets the same response, and another body 422", async () => {
    const headers = { "idempotency-key": '"click-1"' };
    const first = await (await service.post("/api/tracking/event", click, headers)).json();
    expect(await (await service.post("/api/tracking/event", click, { "idempotency-key": "click-1" })).json()).toEqual(
      first,
    );
    await problem(
      await service.post("/api/tracking/event", { ...click, event: "other" }, headers),
      422,
      "idempotency-key-reused",
    );
  });

  test("the request id and the trace are returned, and stored with the caller in the event", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const headers = { ...BEARER, "x-request-id": "req-42", traceparent };
    const answer = await service.post("/api/tracking/event", { ...click, short_code: "traced" }, headers);
    expect([answer.headers.get("x-request-id"), answer.headers.get("traceparent")]).toEqual(["req-42", traceparent]);
    const stored = (await exported(world)).find(({ data }) => data["short_code"] === "traced");
    expect(stored?.meta).toMatchObject({ request_id: "req-42", traceparent, caller: "tester" });
  });

  test("no secret is in the service's output or an export", async () => {
    const { out } = await world.command("audit", "export");
    const tokens = [...world.sandbox.x.access.keys(), ...world.sandbox.x.refresh.keys()];
    const secrets = [
      world.sandbox.x.clientSecret,
      world.sandbox.meta.accessToken,
      world.sandbox.telegram.botToken,
      world.sandbox.slack.path,
      ...tokens,
    ];
    expect(tokens.length).toBeGreaterThan(1);
    for (const secret of secrets) expect((out + service.log()).includes(secret)).toBe(false);
  });
});

/** Requests the callback without one of its parameters, in a browser that began the authorization. */
async function authorizeWithout(service: ListeningService, parameter: string): Promise<Response> {
  const start = await service.get("/social/auth");
  const cookie = (start.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const state = new URL(start.headers.get("location") ?? "").searchParams.get("state") ?? "";
  const query = new URLSearchParams({ state, code: "abc" });
  query.delete(parameter);
  return service.get(`/social/callback?${query.toString()}`, { headers: { cookie } });
}
