// These tests start the service or commands as processes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createClient, type Client } from "@reachlog/client";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { authorize, openInstallation, TOKEN, type Installation, type Running } from "../harness/process.ts";

const CLICK = { event: "click", domain: "go.example", short_code: "spring", original_url: "https://shop.example/" };

describe("the client at a running service", () => {
  let world: Installation;
  let service: Running;
  let client: Client;
  /** Operations of the OpenAPI document that the test has called so far, as method and path. */
  const asked = new Set<string>();

  beforeAll(async () => {
    world = await openInstallation();
    service = await world.serve();
    // The client returns a redirect as the answer and does not follow it.
    client = createClient({
      url: service.url,
      token: TOKEN,
      fetch: (request) => fetch(request, { redirect: "manual" }),
    });
    client.use({ onRequest: ({ request, schemaPath }) => void asked.add(`${request.method} ${schemaPath}`) });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("reads health and metrics", async () => {
    const { data: outreach } = await client.GET("/social/health");
    expect([outreach?.status, outreach?.quota.limit]).toEqual(["ok", 100]);
    const { data: health } = await client.GET("/api/health");
    expect([health?.status, health?.channels?.ads?.circuit]).toEqual(["ok", "closed"]);
    expect((await client.GET("/livez")).data?.status).toBe("ok");
    expect((await client.GET("/readyz")).data?.checks.log_writable).toBe(true);
    const { data: figures } = await client.GET("/metrics", { parseAs: "text" });
    expect(figures).toContain("reachlog_build_info");
    expect((await client.GET("/openapi.json")).data?.openapi).toBe("3.1.0");
  });

  test("authorizes and unlinks an account", async () => {
    const { response } = await client.GET("/social/auth");
    expect([response.status, URL.canParse(response.headers.get("location") ?? "")]).toEqual([302, true]);
    const { error: failed } = await client.GET("/social/callback");
    expect(failed?.type).toBe("urn:reachlog:problem:authorization-failed");
    const { error: missing } = await client.GET("/social/me");
    expect([missing?.type, missing?.status]).toEqual(["urn:reachlog:problem:not-authorized", 401]);
    await authorize(service, world.sandbox);
    expect((await client.GET("/social/me")).data?.username).toBe("acme_team");
    const { data: unlinked } = await client.POST("/social/account/unlink", { body: {} });
    expect(unlinked).toEqual({ unlinked: true, revoked: true });
    await authorize(service, world.sandbox);
  });

  test("manages recipients", async () => {
    const { data: taken } = await client.POST("/social/recipients", {
      headers: { "Content-Type": "text/csv" },
      body: "username,basis\nada_builds,opt_in\nben_noconsent,none\n",
      bodySerializer: (body) => body,
    });
    expect([taken?.added, taken?.without_consent]).toEqual([2, 1]);
    const { data: previewed } = await client.POST("/social/recipients/preview", { body: [{ username: "sara_sells" }] });
    expect(previewed?.refused).toBe(0);
    const { error: unreadable } = await client.POST("/social/recipients", { body: "none" });
    expect(unreadable?.type).toBe("urn:reachlog:problem:unreadable-file");
    const recipient = "ada_builds";
    const consent = { recipient, tracking: "denied", tracking_source: "mail" } as const;
    expect((await client.POST("/social/recipients/consent", { body: consent })).data?.tracking).toBe("denied");
    expect((await client.POST("/social/recipients/suppress", { body: { recipient } })).data?.known).toBe(true);
    const list = { suppressions: [{ username: "cid", reason: "opt_out", suppressed_at: "2026-03-02" }] };
    expect((await client.POST("/social/suppressions", { body: list })).data?.added).toBe(1);
    const { data: exported } = await client.GET("/social/suppressions", { parseAs: "text" });
    expect(exported).toContain('"cid"');
    const { error: unknown } = await client.POST("/social/recipients/retry", { body: { recipient: "nobody_known" } });
    expect(unknown?.status).toBe(404);
    const { error: stranger } = await client.POST("/social/recipients/release", {
      body: { recipient: "nobody_known" },
    });
    expect(stranger?.status).toBe(404);
    expect((await client.GET("/social/recipients/held")).data?.count).toBe(0);
    const { data: known } = await client.GET("/social/recipients", { params: { query: { limit: "1" } } });
    const one = await client.GET("/social/recipients/show", { params: { query: { recipient: "@ada_builds" } } });
    expect(one.data?.recipient.username).toBe("ada_builds");
    expect([known?.recipients.map(({ username }) => username), known?.count]).toEqual([["ada_builds"], 3]);
    expect((await client.GET("/api/links")).data?.links).toEqual([]);
    const link = { code: "spring", target: "https://shop.example/" };
    expect((await client.POST("/api/links/add", { body: link })).error?.type).toBe("urn:reachlog:problem:no-link-base");
    expect((await client.GET("/social/preview")).data?.skips.map(({ reason }) => reason)).toEqual([
      "suppressed",
      "no_consent",
    ]);
    expect((await client.POST("/social/recipients/forget", { body: { recipient } })).data?.keys).toBeGreaterThan(0);
  });

  test("starts a dry run, and reads runs", async () => {
    const { data: ran } = await client.POST("/social/run", { body: { dry_run: true } });
    if (ran?.status !== "finished") throw new Error("a dry run is waited for");
    expect([ran.dry_run, ran.would_send, ran.would_skip?.map(({ reason }) => reason)]).toEqual([
      true,
      [],
      ["no_consent"],
    ]);
    const { error: idle } = await client.POST("/social/run/stop", { body: {} });
    expect(idle?.type).toBe("urn:reachlog:problem:no-run-in-progress");
    expect((await client.GET("/social/account")).data?.authorized).toBe(true);
    const { data: stats } = await client.GET("/social/stats");
    expect([stats?.sent, stats?.failed]).toEqual([0, 0]);
    const { data: quota } = await client.GET("/social/quota", { params: { query: { as_of: "1" } } });
    expect([quota?.used, quota?.remaining]).toEqual([0, 100]);
    const campaign = { name: "spring", text: "Hi {{name|there}}", messaged: "default", days: 5 };
    const { data: created } = await client.POST("/social/campaigns/create", { body: campaign });
    expect([created?.campaign.follow_up, created?.campaign.audience]).toEqual([1, { messaged: "default", days: 5 }]);
    const changed = await client.POST("/social/campaigns/change", { body: { name: "spring", all: true } });
    expect(changed.data?.campaign.audience).toEqual({});
    expect(
      (await client.GET("/social/campaigns/count", { params: { query: { name: "spring" } } })).data?.left_out,
    ).toEqual([]);
    const ended = await client.POST("/social/campaigns/end", { body: { name: "spring" } });
    expect(ended.data?.campaign.ended_at).toBeString();
    const { error: over } = await client.POST("/social/campaigns/change", { body: { name: "spring", text: "Hi" } });
    expect(over?.type).toBe("urn:reachlog:problem:campaign-ended");
    const shown = await client.GET("/social/campaigns/show", { params: { query: { name: "spring" } } });
    expect([shown.data?.campaign.text, (await client.GET("/social/campaigns")).data?.campaigns.length]).toEqual([
      "Hi {{name|there}}",
      2,
    ]);
    const { data: runs } = await client.GET("/social/runs");
    expect(runs?.runs.map(({ number, dry_run }) => [number, dry_run])).toEqual([[null, true]]);
  });

  test("sends clicks, notifications and messages", async () => {
    const key = { params: { header: { "Idempotency-Key": "the-first" } } };
    const { data: first } = await client.POST("/api/tracking/event", { ...key, body: CLICK });
    const { data: again } = await client.POST("/api/tracking/event", { ...key, body: CLICK });
    expect(again?.id).toBe(first?.id as string);
    const { error: reused } = await client.POST("/api/tracking/event", { ...key, body: { ...CLICK, event: "other" } });
    expect(reused?.type).toBe("urn:reachlog:problem:idempotency-key-reused");
    const sale = { name: "Purchase", link: "go.example/sale", value: "24.90", currency: "EUR" };
    const { data: converted } = await client.POST("/api/tracking/conversion", { body: sale });
    expect(converted).toMatchObject({ id: expect.any(String), event_id: converted!.id });
    const { error: invalid } = await client.POST("/api/tracking/event", { body: { ...CLICK, original_url: "no url" } });
    if (invalid?.status !== 422) throw new Error("it is refused by its schema");
    expect(invalid.errors?.map(({ path }) => path)).toEqual(["/original_url"]);
    expect((await client.POST("/api/notify", { body: { message: "m", level: "info" } })).data?.status).toBe(
      "delivered",
    );
    expect((await client.POST("/api/messaging", { body: { text: "t" } })).data?.status).toBe("delivered");
    const notice = { object: "whatsapp_business_account", entry: [] } as const;
    const { error: unsigned } = await client.POST("/api/messaging/whatsapp", { body: { ...notice, entry: [] } });
    const { error: unverified } = await client.GET("/api/messaging/whatsapp", { parseAs: "text" });
    const wrong = "urn:reachlog:problem:wrong-signature";
    expect([unsigned?.type, unverified?.type]).toEqual([wrong, wrong]);
    expect((await client.POST("/api/report", { body: {} })).data?.report).toContain("people");
    const { data: tested } = await client.POST("/api/tracking/test", { body: {} });
    expect(tested?.results.chat?.status).toBe("delivered");
    const { error: unknown } = await client.POST("/api/tracking/forget", { body: { ip: "192.0.2.1" } });
    expect(unknown?.type).toBe("urn:reachlog:problem:unknown-address");
  });

  test("manages deliveries", async () => {
    const { error: working } = await client.POST("/api/deliveries/resume", { body: { channel: "chat" } });
    expect(working?.type).toBe("urn:reachlog:problem:not-suspended");
    expect((await client.POST("/api/deliveries/retry", { body: { all: true } })).data?.done).toBe(0);
    const filter = { error: "5xx", link: "go.example", from: "2026-01-01" };
    const { data } = await client.GET("/api/deliveries", { params: { query: { ...filter, status: "in_doubt" } } });
    expect(data).toMatchObject({ count: 0, dispatches: [], next: null });
    expect((await client.GET("/api/deliveries/channels")).data?.channels).toMatchObject([
      { channel: "ads" },
      {},
      {},
      {},
    ]);
    expect((await client.GET("/api/deliveries/lag")).data?.channels[0]?.backlog).toBe(0);
    const shown = await client.GET("/api/deliveries/show", { params: { query: { event_id: "1" } } });
    expect(shown.error?.type).toBe("urn:reachlog:problem:no-dispatch");
    const changed = { all: true, ...filter, expected: 1 } as const;
    expect((await client.POST("/api/deliveries/retry", { body: changed })).error?.type).toBe(
      "urn:reachlog:problem:number-changed",
    );
    const why = "of a test";
    expect((await client.POST("/api/deliveries/discard", { body: { all: true, why } })).data?.left_count).toBe(0);
    const deciding = { body: { channel: "chat", leave: ["1"], why } };
    expect((await client.POST("/api/deliveries/decide", deciding)).data?.leave.done).toBe(0);
    expect((await client.POST("/social/lookup", { body: {} })).response.status).toBeLessThan(500);
    const settling = { body: { all: true, as: "left", why } } as const;
    expect((await client.POST("/social/settle", settling)).data?.done).toBe(0);
    expect((await client.POST("/api/deliveries/settle", settling)).data?.left_count).toBe(0);
  });

  test("reads and verifies the log", async () => {
    const { data: begun } = await client.POST("/api/audit/verify", { body: {} });
    expect(begun?.status).toBe("started");
    expect((await client.GET("/api/tokens")).data?.last_uses).toBe("known");
    expect((await client.GET("/api/audit/verify")).data).toBeDefined();
    const { data: head } = await client.GET("/api/audit/head", { parseAs: "text" });
    expect(head).toContain("\n");
    const { data: proof } = await client.GET("/api/audit/proof/{event}", {
      params: { path: { event: "1" } },
      parseAs: "text",
    });
    expect(proof).toStartWith("c2sp.org/tlog-proof@v1\n");
    const { response: unknown } = await client.GET("/l/{code}", { params: { path: { code: "none" } } });
    expect(unknown.status).toBe(404);
    const ofNoMessage = { params: { path: { code: "none" } } };
    expect((await client.GET("/o/{code}", ofNoMessage)).response.status).toBe(404);
    expect((await client.POST("/o/{code}", ofNoMessage)).response.status).toBe(404);
    const { data: results } = await client.GET("/social/results", { params: { query: { by: "variant" } } });
    expect(results).toMatchObject({ by: "variant" });
    const { data: history } = await client.GET("/api/audit/history", { params: { query: { subject: "1" } } });
    expect(history?.kind).toBe("event");
    const changed = { params: { query: { event: "1", projection: "stats" } } };
    expect((await client.GET("/api/audit/change", changed)).data?.projection).toBe("stats");
    const { data: whatIf } = await client.POST("/api/what-if", { body: { DAILY_LIMIT: 1 } });
    expect(whatIf?.rules).toEqual(["DAILY_LIMIT"]);
    const { error: unknownRule } = await client.POST("/api/what-if", { body: { DAILY_LIMIT: "none" } });
    expect(unknownRule?.status).toBe(422);
    const link = "go.example/spring";
    const { data: ofLink } = await client.GET("/api/clicks", { params: { query: { link } } });
    expect(ofLink?.links.map((one) => one.link)).toEqual([link]);
    const { data: clicks } = await client.GET("/api/audit/export", { params: { query: { link } }, parseAs: "text" });
    expect(clicks?.trim().split("\n")).toHaveLength(1);
    const { data: events } = await client.GET("/events", { params: { query: { from: "1" } }, parseAs: "stream" });
    const reader = events?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toStartWith("retry: ");
    await reader?.cancel();
  });

  test("has called every operation for programs", () => {
    const programs = describeEndpoints().filter(({ tag }) => tag !== "console");
    expect([...asked].sort()).toEqual(
      programs.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`).sort(),
    );
  });

  test("receives a problem with a wrong or missing token", async () => {
    const body = { text: "t" };
    const { error: wrong } = await createClient({ url: service.url, token: "wrong" }).POST("/api/messaging", { body });
    const { error: none } = await createClient({ url: `${service.url}/` }).POST("/api/messaging", { body });
    const unauthorized = "urn:reachlog:problem:unauthorized";
    expect([wrong?.type, none?.type]).toEqual([unauthorized, unauthorized]);
  });
});

test("a call that the service does not accept does not compile", () => {
  const calls = (client: Client) => [
    // @ts-expect-error: no such path
    () => client.GET("/api/nothing"),
    // @ts-expect-error: no such method
    () => client.GET("/api/notify"),
    // @ts-expect-error: a member is missing
    () => client.POST("/api/tracking/event", { body: { event: "click" } }),
    // @ts-expect-error: no name of a channel
    () => client.POST("/api/deliveries/resume", { body: { channel: 1 } }),
  ];
  expect(calls).toBeFunction();
});
