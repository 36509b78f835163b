// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { SendDmResult } from "../../../src/networks/network.ts";
import type { SafeFetch } from "../../../src/networks/safe-fetch.ts";
import { createX } from "../../../src/networks/x/x-api.ts";
import { deadUrl, safeFetchTo, serve, serveRaw } from "../../harness/in-process/local-test-servers.ts";
import { NOW, thrownBy, TOKEN, xAt } from "../x-client.ts";

const ANN = { id: "11", username: "ann", name: "Ann", receives_your_dm: true, protected: false };

describe("sending", () => {
  test("is one POST of the text alone, with a deadline of 15 s", async () => {
    await using server = serve(() =>
      Response.json({ data: { dm_conversation_id: "1-22", dm_event_id: "158" } }, { status: 201 }),
    );
    let deadline = 0;
    const real = safeFetchTo(server.url);
    const safeFetch: SafeFetch = (url, request) => {
      deadline = request.timeoutMs;
      return real(url, request);
    };
    const x = createX({ apiUrl: server.url, safeFetch, clock: () => NOW });
    expect(await x.sendDm(TOKEN, "22", "Hi <&> 😀")).toEqual({ outcome: "sent", messageId: "158", rate: undefined });
    expect(deadline).toBe(15_000);
    const [request] = server.requests;
    expect([request?.method, request?.path]).toEqual(["POST", "/2/dm_conversations/with/22/messages"]);
    expect(request?.body).toBe('{"text":"Hi <&> 😀"}');
    expect(request?.headers.get("authorization")).toBe(`Bearer ${TOKEN}`);
    expect(request?.headers.get("content-type")).toBe("application/json");
  });

  const detail = expect.any(String);
  test.each<[number, unknown, object]>([
    [201, { data: { dm_event_id: "1" }, errors: [{ title: "odd" }] }, { outcome: "sent", messageId: "1" }],
    [200, { data: { dm_event_id: "1" } }, { outcome: "sent", messageId: "1" }],
    [201, {}, { outcome: "in_doubt", detail }],
    [201, "<html>", { outcome: "in_doubt", detail }],
    [201, { data: { dm_event_id: "../x" } }, { outcome: "in_doubt", detail }],
    [200, { errors: [{ code: 349, message: "no" }] }, { outcome: "in_doubt", detail }],
    [400, { title: "Invalid Request" }, { outcome: "rejected", detail }],
    [401, { title: "Unauthorized" }, { outcome: "unauthorized" }],
    [402, { title: "CreditsDepleted" }, { outcome: "stopped", reason: "credits_depleted", detail }],
    [
      403,
      { detail: "You do not have permission to DM one or more participants." },
      { outcome: "recipient_closed", detail },
    ],
    [403, { errors: [{ code: 349, message: "no" }] }, { outcome: "recipient_closed", detail }],
    [403, { detail: "This operation is not permitted." }, { outcome: "not_permitted", detail }],
    [403, { code: 453, message: "no access" }, { outcome: "stopped", reason: "app_not_enrolled", detail }],
    [403, { title: "Forbidden", detail: "Forbidden" }, { outcome: "stopped", reason: "missing_scope", detail }],
    [403, { detail: "duplicate content" }, { outcome: "in_doubt", detail }],
    [429, "", { outcome: "rate_limited", retryAt: NOW + 900_000 }],
    [
      429,
      { type: "https://api.x.com/2/problems/usage-capped" },
      { outcome: "stopped", reason: "usage_capped", detail },
    ],
    [500, "", { outcome: "in_doubt", detail }],
    [503, { errors: [{ code: 130 }] }, { outcome: "in_doubt", detail }],
  ])("classifies an answer of %i %j", async (status, body, result) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    await using server = serve(() => new Response(text, { status }));
    expect(await xAt(server.url).sendDm(TOKEN, "22", "Hi")).toEqual({ ...result, rate: undefined } as SendDmResult);
    expect(server.requests).toHaveLength(1);
  });

  test("returns the rate-limit window with every outcome", async () => {
    const reset = NOW / 1000 + 600;
    const window = { "x-rate-limit-limit": "15", "x-rate-limit-remaining": "0", "x-rate-limit-reset": `${reset}` };
    const headers = { ...window, date: new Date(NOW).toUTCString() };
    const rate = { limit: 15, remaining: 0, resetAt: NOW + 600_000 };
    for (const status of [201, 400, 401, 402, 403, 429, 500]) {
      await using server = serve(() => new Response("{}", { status, headers }));
      const result = await xAt(server.url).sendDm(TOKEN, "22", "Hi");
      expect(result.rate).toEqual(rate);
      if (result.outcome === "rate_limited") expect(result.retryAt).toBe(rate.resetAt);
    }
  });

  test("is in doubt without an answer", async () => {
    await using silent = await serveRaw(() => undefined);
    await using broken = await serveRaw((socket) => socket.resetAndDestroy());
    await using cut = await serveRaw((socket) => socket.end("HTTP/1.1 201 Created\r\ncontent-length: 99\r\n\r\n{"));
    for (const { url } of [silent, broken, cut]) {
      expect((await xAt(url, 50).sendDm(TOKEN, "22", "Hi")).outcome).toBe("in_doubt");
    }
  });

  test("is unreachable if the connection is refused", async () => {
    expect(await xAt(await deadUrl()).sendDm(TOKEN, "22", "Hi")).toEqual({
      outcome: "unreachable",
      detail: "the connection was refused",
      rate: undefined,
    });
  });

  test.each([
    ["../users/me", "Hi"],
    ["12345678901234567890", "Hi"],
    ["22\n", "Hi"],
    ["", "Hi"],
    ["22", ""],
    ["22", "a".repeat(10_001)],
  ])("to %j with an invalid id or text is rejected without a request", async (recipient, text) => {
    await using server = serve(() => new Response());
    expect((await xAt(server.url).sendDm(TOKEN, recipient, text)).outcome).toBe("rejected");
    expect(server.requests).toEqual([]);
  });
});

describe("reading users", () => {
  const SHOWN = { id: "11", username: "ann", name: "Ann", receivesOurDm: true, protected: false };

  test("returns the authorized user", async () => {
    await using server = serve(() => Response.json({ data: ANN }));
    expect(await xAt(server.url).me(TOKEN)).toEqual({ id: "11", username: "ann", name: "Ann" });
    expect(server.requests[0]).toMatchObject({ method: "GET", path: "/2/users/me" });
  });

  test("by handle or id requests receives_your_dm and protected", async () => {
    await using server = serve(() => Response.json({ data: [ANN], errors: [{ value: "ghost" }] }));
    const x = xAt(server.url);
    expect(await x.usersByUsername(TOKEN, ["ann", "ghost", "no,handle", "way_too_long_handle"])).toEqual([SHOWN]);
    expect(await x.usersById(TOKEN, ["11", "1x", "../2"])).toEqual([SHOWN]);
    expect(server.requests.map(({ path, query }) => [path, Object.fromEntries(query)])).toEqual([
      ["/2/users/by", { usernames: "ann,ghost", "user.fields": "receives_your_dm,protected" }],
      ["/2/users", { ids: "11", "user.fields": "receives_your_dm,protected" }],
    ]);
  });

  test("makes no request without a valid id, and throws for more than 100", async () => {
    await using server = serve(() => new Response());
    expect(await xAt(server.url).usersById(TOKEN, ["x"])).toEqual([]);
    const tooMany = Array.from({ length: 101 }, (_, index) => String(index));
    expect(
      await xAt(server.url)
        .usersById(TOKEN, tooMany)
        .catch((fault: unknown) => fault),
    ).toBeInstanceOf(RangeError);
    expect(server.requests).toEqual([]);
  });

  test("returns an empty list for unknown ids, and undefined for missing fields", async () => {
    const { id, username } = ANN;
    const bodies = [{ errors: [{ title: "Not Found Error" }] }, { data: [{ id, username, name: "A\u202en\nn" }] }];
    await using server = serve((_seen, nth) => Response.json(bodies[nth - 1]));
    expect(await xAt(server.url).usersById(TOKEN, ["11"])).toEqual([]);
    expect(await xAt(server.url).usersById(TOKEN, ["11"])).toEqual([
      { id, username, name: "An n", receivesOurDm: undefined, protected: undefined },
    ]);
  });

  test("is unavailable after an answer without users and errors", async () => {
    await using server = serve(() => Response.json({}));
    expect((await thrownBy(xAt(server.url).usersById(TOKEN, ["11"]))).kind).toBe("unavailable");
  });
});

describe("a conversation", () => {
  const AT = "2026-11-20T09:59:00.000Z";
  const event = (more: object) => ({ id: "158", event_type: "MessageCreate", text: "Hi", created_at: AT, ...more });

  async function read(body: object) {
    await using server = serve(() => Response.json(body));
    const messages = await xAt(server.url).conversation(TOKEN, "22", 10);
    return { messages, request: server.requests[0] };
  }

  test("requests only fields in both specifications of X", async () => {
    const { messages, request } = await read({ data: [event({ sender_id: "1" })] });
    expect(messages).toEqual([{ id: "158", senderId: "1", text: "Hi", createdAt: Date.parse(AT) }]);
    expect(request?.path).toBe("/2/dm_conversations/with/22/dm_events");
    expect(Object.fromEntries(request?.query ?? [])).toEqual({
      max_results: "10",
      event_types: "MessageCreate",
      "dm_event.fields": "id,event_type,text,created_at,dm_conversation_id,entities",
      expansions: "sender_id",
    });
  });

  test("takes the sender from the expansion if there is only one", async () => {
    const { messages } = await read({ data: [event({})], includes: { users: [{ id: "1", name: "Me" }] } });
    expect(messages[0]?.senderId).toBe("1");
  });

  test("shows links and characters as they were written", async () => {
    const urls = [
      { start: 4, end: 27, url: "https://t.co/abc", expanded_url: "https://go.example.com/a?b=1&c=$&" },
      { url: "https://t.co/def" },
    ];
    const text = "See https://t.co/abc &amp; https://t.co/def &lt;3 &amp;lt; https://t.co/abc, https://t.co/abcd.";
    const { messages } = await read({ data: [event({ sender_id: "1", text, entities: { urls } })] });
    const link = "https://go.example.com/a?b=1&c=$&";
    expect(messages[0]?.text).toBe(`See ${link} & https://t.co/def <3 &lt; ${link}, https://t.co/abcd.`);
  });

  test("is empty only if X says so", async () => {
    expect((await read({ meta: { result_count: 0 } })).messages).toEqual([]);
    expect((await read({ data: [], meta: { result_count: 0 } })).messages).toEqual([]);
    expect((await read({ data: [] })).messages).toEqual([]);
  });

  test.each<[string, object]>([
    ["an empty body", {}],
    ["messages that are counted but not shown", { meta: { result_count: 3 } }],
    ["errors alone", { errors: [{ title: "Service Unavailable" }] }],
    ["an error beside a count of none", { errors: [{ title: "Odd" }], meta: { result_count: 0 } }],
    ["an error beside no messages", { data: [], errors: [{ title: "Odd" }] }],
    ["no messages beside a count", { data: [], meta: { result_count: 2 } }],
    ["a sender that cannot be known", { data: [event({})], includes: { users: [{ id: "1" }, { id: "22" }] } }],
    ["no sender", { data: [event({})] }],
    ["no time", { data: [event({ sender_id: "1", created_at: "yesterday" })] }],
    ["an invalid message", { data: [event({ sender_id: "1" }), null] }],
  ])("is unavailable with %s, because absence must not be guessed", async (_name, body) => {
    expect((await thrownBy(read(body))).kind).toBe("unavailable");
  });

  test("continues on the next page while X returns fewer messages than requested", async () => {
    const pages = [
      { data: [event({ id: "3", sender_id: "1" })], meta: { next_token: "a" } },
      { meta: { result_count: 0, next_token: "b" } },
      { data: [event({ id: "2", sender_id: "1" })], meta: { next_token: "c" } },
    ];
    await using server = serve((_seen, nth) => Response.json(pages[nth - 1]));
    const found = await xAt(server.url).conversation(TOKEN, "22", 2);
    expect(found.map(({ id }) => id)).toEqual(["3", "2"]);
    const asked = server.requests.map(({ query }) => [query.get("max_results"), query.get("pagination_token")]);
    expect(asked).toEqual([
      ["2", null],
      ["1", "a"],
      ["1", "b"],
    ]);
  });

  test("is unavailable if its pages never end", async () => {
    await using server = serve(() => Response.json({ meta: { result_count: 0, next_token: "again" } }));
    expect((await thrownBy(xAt(server.url).conversation(TOKEN, "22", 5))).kind).toBe("unavailable");
    expect(server.requests).toHaveLength(3);
  });

  test("requests 1 to 100 messages", async () => {
    await using server = serve(() => Response.json({ data: [] }));
    for (const limit of [0, 1000]) await xAt(server.url).conversation(TOKEN, "22", limit);
    expect(server.requests.map(({ query }) => query.get("max_results"))).toEqual(["1", "100"]);
  });
});

describe("a read that fails", () => {
  test.each<[number, object, object]>([
    [400, {}, { kind: "rejected" }],
    [401, {}, { kind: "unauthorized" }],
    [402, {}, { kind: "stopped", stop: "credits_depleted" }],
    [403, { detail: "Forbidden" }, { kind: "stopped", stop: "missing_scope" }],
    [403, { detail: "This operation is not permitted." }, { kind: "rejected" }],
    [403, { code: 453, message: "no access" }, { kind: "stopped", stop: "app_not_enrolled" }],
    [403, { type: "https://api.x.com/2/problems/not-authorized-for-resource" }, { kind: "rejected" }],
    [403, { detail: "duplicate content" }, { kind: "rejected" }],
    [404, {}, { kind: "rejected" }],
    [429, {}, { kind: "rate_limited", retryAt: NOW + 900_000 }],
    [429, { title: "UsageCapExceeded" }, { kind: "stopped", stop: "usage_capped" }],
    [503, {}, { kind: "unavailable" }],
    [204, {}, { kind: "unavailable" }],
    [200, {}, { kind: "unavailable" }],
    [200, { data: { id: "1", username: "bad handle", name: "x" } }, { kind: "unavailable" }],
  ])("is classified by the answer %i %j", async (status, body, expected) => {
    await using server = serve(() => new Response(status === 204 ? null : JSON.stringify(body), { status }));
    expect(await thrownBy(xAt(server.url).me(TOKEN))).toMatchObject(expected);
  });

  test("is unavailable without an answer, or with an endless one", async () => {
    await using silent = await serveRaw(() => undefined);
    await using endless = serve(() => new Response("[".repeat(200_000)));
    for (const url of [silent.url, await deadUrl(), endless.url]) {
      expect((await thrownBy(xAt(url, 200).me(TOKEN))).kind).toBe("unavailable");
    }
  });

  test.each(["../me", "", "1?x=1", "12345678901234567890"])("makes no request for the invalid id %j", async (id) => {
    await using server = serve(() => Response.json({ data: [] }));
    expect((await thrownBy(xAt(server.url).followers(TOKEN, id, { limit: 1 }))).kind).toBe("rejected");
    expect((await thrownBy(xAt(server.url).conversation(TOKEN, id, 10))).kind).toBe("rejected");
    expect(server.requests).toEqual([]);
  });
});
