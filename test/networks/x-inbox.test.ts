// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { serve } from "../harness/in-process/local-test-servers.ts";
import { escapedJson, thrownBy, TOKEN, xAt } from "./x-client.ts";

const AT = "2026-11-20T09:59:00.000Z";
const event = (more: object) => ({ id: "158", event_type: "MessageCreate", text: "Hi", created_at: AT, ...more });

async function read(body: object) {
  await using server = serve(() => Response.json(body));
  return await xAt(server.url).inbox(TOKEN, { limit: 10 });
}

describe("the inbox", () => {
  test("returns senders, texts and the token of the next page", async () => {
    const page = await read({
      data: [
        event({ id: "3", sender_id: "22", text: "stop &amp; go", dm_conversation_id: "1-22" }),
        event({ id: "2", sender_id: "1", dm_conversation_id: "1-22" }),
        // The id of a group conversation does not consist of the users' ids.
        event({ id: "1", sender_id: "22", dm_conversation_id: "1799999999" }),
      ],
      includes: { users: [{ id: "22", username: "ann", name: "Ann" }, { id: "1" }] },
      meta: { result_count: 3, next_token: "n" },
    });
    const createdAt = Date.parse(AT);
    expect(page).toEqual({
      messages: [
        { id: "3", senderId: "22", senderUsername: "ann", text: "stop & go", createdAt },
        { id: "2", senderId: "1", senderUsername: undefined, text: "Hi", createdAt },
        { id: "1", senderId: "22", senderUsername: "ann", text: "Hi", createdAt, inGroup: true },
      ],
      next: "n",
    });
  });

  test("requests only fields in both specifications of X, without links", async () => {
    await using server = serve(() => Response.json({ meta: { result_count: 0 } }));
    await xAt(server.url).inbox(TOKEN, { limit: 1000 });
    await xAt(server.url).inbox(TOKEN, { limit: 0, cursor: "N+/=" });
    const asked = {
      event_types: "MessageCreate",
      "dm_event.fields": "id,event_type,text,created_at,dm_conversation_id",
      expansions: "sender_id",
    };
    expect(server.requests.map(({ path, query }) => [path, Object.fromEntries(query)])).toEqual([
      ["/2/dm_events", { max_results: "100", ...asked }],
      ["/2/dm_events", { max_results: "1", ...asked, pagination_token: "N+/=" }],
    ]);
  });

  test("is empty only if X says so, and can still have a next page", async () => {
    expect(await read({ meta: { result_count: 0 } })).toEqual({ messages: [] });
    expect(await read({ meta: { result_count: 0, next_token: "n" } })).toEqual({ messages: [], next: "n" });
  });

  test("continues at a page token of any length, but not at an empty one", async () => {
    const long = "n".repeat(5_000);
    expect(await read({ meta: { result_count: 0, next_token: long, previous_token: "p" } })).toMatchObject({
      next: long,
    });
    expect(await read({ meta: { result_count: 0, next_token: "" } })).toEqual({ messages: [] });
  });

  test("includes a message without text", async () => {
    const { text: _text, ...wordless } = event({ sender_id: "22" });
    expect((await read({ data: [wordless] })).messages).toMatchObject([{ senderId: "22", text: "" }]);
  });

  test.each<[string, object]>([
    ["an empty body", {}],
    ["messages that are counted but not shown", { meta: { result_count: 3 } }],
    ["errors alone", { errors: [{ title: "Service Unavailable" }] }],
    ["an error beside a count of none", { errors: [{ title: "Odd" }], meta: { result_count: 0 } }],
    [
      "no sender, though only one is included",
      { data: [event({})], includes: { users: [{ id: "22", username: "ann" }] } },
    ],
    ["no time", { data: [event({ sender_id: "22", created_at: "yesterday" })] }],
    ["an invalid text", { data: [event({ sender_id: "22", text: 5 })] }],
    ["an invalid message", { data: [event({ sender_id: "22" }), null] }],
  ])("is unavailable with %s, so that no opt-out is missed", async (_name, body) => {
    expect((await thrownBy(read(body))).kind).toBe("unavailable");
  });
});

describe("large messages", () => {
  test.each([
    ["of 4 bytes", "😀", 10_000],
    ["of 3 bytes", "あ", 10_000],
    ["that are escaped for HTML", "&lt;", 10_000],
    ["of links", "https://t.co/a ", 666],
  ])("100 messages of 10,000 characters %s are read, plain or escaped", async (_name, part, times) => {
    const text = part.repeat(times);
    const data = Array.from({ length: 100 }, (_, index) =>
      event({
        id: String(10n ** 18n + BigInt(index)),
        sender_id: "1".repeat(19),
        dm_conversation_id: "1".repeat(39),
        text,
      }),
    );
    const body = { data, includes: { users: [{ id: "1", username: "u", name: "😀".repeat(50) }] } };
    for (const json of [JSON.stringify(body), escapedJson(body)]) {
      await using server = serve(() => new Response(json));
      const x = xAt(server.url);
      const { messages } = await x.inbox(TOKEN, { limit: 100 });
      const conversation = await x.conversation(TOKEN, "22", 100);
      expect([messages.length, conversation.length]).toEqual([100, 100]);
      expect(messages[99]?.text.length).toBe(text.replaceAll("&lt;", "<").length);
    }
  });

  test("a page of one accepts the largest message, but not two", async () => {
    const largest = event({ sender_id: "22", text: "😀".repeat(10_000) });
    await using server = serve((_seen, nth) =>
      nth === 1
        ? new Response(escapedJson({ data: [largest] }))
        : new Response(escapedJson({ data: [largest, largest] })),
    );
    const x = xAt(server.url);
    expect((await x.inbox(TOKEN, { limit: 1 })).messages).toHaveLength(1);
    expect((await thrownBy(x.inbox(TOKEN, { limit: 1 }))).kind).toBe("unavailable");
  });

  test("a message full of links shows each of them expanded", async () => {
    const urls = Array.from({ length: 2_000 }, (_, index) => ({
      url: `https://t.co/${index.toString(36).padStart(10, "a")}`,
      expanded_url: "http://a.co",
    }));
    const data = [event({ sender_id: "22", text: urls.map(({ url }) => url).join(" "), entities: { urls } })];
    await using server = serve(() => Response.json({ data }));
    const [message] = await xAt(server.url).conversation(TOKEN, "22", 5);
    expect(message?.text).toBe(urls.map(() => "http://a.co").join(" "));
  });
});
