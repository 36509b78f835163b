// These tests run parts of the service inside the test process.
import { afterAll, describe, expect, test } from "bun:test";
import { GOOD, openApp, post, slugOf, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";

const LIMIT = 64 * 1024;
const text = new TextEncoder();

/** App that several tests share. A test that leaves events which another test counts must not use it. */
const shared = await openApp();
afterAll(() => shared[Symbol.asyncDispose]());

const notify = (world: AppHarness, body: unknown, headers: Record<string, string> = {}) =>
  post(world.app, "/api/notify", body, { token: TOKEN, headers });

/** Builds a request body of exactly this size. It is valid JSON, but its message is too long. */
const ofBytes = (bytes: number): string => JSON.stringify({ message: "x".repeat(bytes - '{"message":""}'.length) });

/** Returns the body as a stream of pieces without a length, as a chunked request has it. */
function chunked(body: string): ReadableStream<Uint8Array> {
  const bytes = text.encode(body);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + 10_000));
      at += 10_000;
    },
  });
}

describe("a body of 64 KiB", () => {
  const shapes = [
    ["with a content length", (body: string) => body, true],
    ["in chunks", chunked, false],
  ] as const;
  test.each(shapes)("is read, and refused with one byte more: %s", async (_what, shape, hasLength) => {
    const headers = (bytes: number): Record<string, string> => (hasLength ? { "content-length": String(bytes) } : {});
    expect(await problemIn(await notify(shared, shape(ofBytes(LIMIT)), headers(LIMIT)))).toBe("422 invalid-request");
    expect(await problemIn(await notify(shared, shape(ofBytes(LIMIT + 1)), headers(LIMIT + 1)))).toBe(
      "413 body-too-large",
    );
  });
});

test("an endless body is refused at the limit", async () => {
  let pulled = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1;
      controller.enqueue(new Uint8Array(10_000).fill(32));
    },
  });
  expect(await problemIn(await notify(shared, endless))).toBe("413 body-too-large");
  expect(pulled).toBeLessThan(20);
});

test.each(["application/json", "application/json; charset=utf-8", 'APPLICATION/JSON;charset="UTF-8"'])(
  "a body of the type %s is read",
  async (type) => {
    expect((await notify(shared, GOOD["/api/notify"], { "content-type": type })).status).toBe(200);
  },
);

test.each([
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "application/json; charset=latin1",
  "application/jsonp",
  "text/json, application/json",
  "",
])("a body of the type %j is refused", async (type) => {
  const body = text.encode(JSON.stringify(GOOD["/api/notify"]));
  expect(await problemIn(await notify(shared, body, { "content-type": type }))).toBe("415 unsupported-media-type");
});

test.each([
  ["a truncated object", '{"message":"x'],
  ["two values", '{"message":"x"}{}'],
  ["a trailing comma", '{"message":"x",}'],
  ["single quotes", "{'message':'x'}"],
  ["not a number", "NaN"],
  ["white space only", "   "],
  ["30,000 nested arrays", "[".repeat(30_000) + "]".repeat(30_000)],
  ["17 nested objects", '{"a":'.repeat(17) + "1" + "}".repeat(17)],
  ["a duplicate member", '{"message":"x","message":"y"}'],
  ["a duplicate member, once escaped", '{"message":"x","mess\\u0061ge":"y"}'],
  ["a duplicate member where no schema looks", '{"message":"x","more":[{"a":1,"a":1}]}'],
  ["a duplicate member next to escaped quotes", '{"a":"\\\\","b":"\\"\\":","a":1}'],
  ["a duplicate __proto__", '{"__proto__":1,"__proto__":2}'],
  ["a NUL in a text", '{"message":"x\\u0000"}'],
  ["a NUL in a name", '{"message\\u0000":"x"}'],
  ["half of a surrogate pair in a text", '{"message":"\\ud83d"}'],
  ["a reversed surrogate pair", '{"message":"\\udc4b\\ud83d"}'],
])("a malformed body is refused: %s", async (_what, body) => {
  expect(await problemIn(await notify(shared, body))).toBe("400 malformed-request");
});

test.each([
  ["colons and quotes", { message: 'a": "b", "message": ":\\\\" }' }],
  ["a backslash before a quote", { message: "\\", service: '\\"' }],
  ["escaped characters", '{"message":"\\ud83d\\udc4b \\u00e4 \\\\u0000"}'],
  ["control characters", { message: "\u001b[31mred\u001b[0m\t\u0085" }],
  ["marks of direction", { message: "\u202eshalom\u202c \u2067x\u2069" }],
])("a message with %s is stored unchanged", async (_what, body) => {
  await using world = await openApp();
  expect((await notify(world, body)).status).toBe(200);
  const given = (typeof body === "string" ? JSON.parse(body) : body) as { message: string };
  expect(await world.events("NotificationRequested")).toMatchObject([{ data: { message: given.message } }]);
});

test.each([
  ["/api/notify", "application/json", "application/json"],
  ["/social/recipients", "text/csv", "text/csv or application/json or application/jsonl or application/x-ndjson"],
  ["/session", "application/x-www-form-urlencoded", "application/x-www-form-urlencoded"],
  ["/console/recipients", "multipart/form-data; boundary=x", "multipart/form-data"],
])("%s names the accepted types if the body is compressed or of another type", async (path, type, taken) => {
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const signedIn = await post(shared.app, "/session", `token=${TOKEN}`, { headers: form });
  const caller = path.startsWith("/console")
    ? { headers: { cookie: signedIn.headers.get("set-cookie")?.split(";")[0] ?? "" } }
    : { token: TOKEN, headers: {} };
  for (const headers of [{ "content-type": type, "content-encoding": "gzip" }, { "content-type": "image/png" }]) {
    const answer = await post(shared.app, path, "x", { ...caller, headers: { ...caller.headers, ...headers } });
    expect([answer.status, ((await answer.json()) as { detail: string }).detail]).toEqual([
      415,
      `Send ${taken} in UTF-8, uncompressed.`,
    ]);
  }
});

test.each(["gzip", "deflate", "br", "x"])("a body with the encoding %s is refused", async (encoding) => {
  const answer = await notify(shared, GOOD["/api/notify"], { "content-encoding": encoding });
  expect(await problemIn(answer)).toBe("415 unsupported-media-type");
});

test.each([
  ["a lone continuation byte", [0x80]],
  ["an overlong slash", [0xc0, 0xaf]],
  ["half of a surrogate pair", [0xed, 0xa0, 0x80]],
  ["a character cut short", [0xe2, 0x82]],
])("invalid UTF-8 is refused rather than altered: %s", async (_what, bytes) => {
  await using world = await openApp();
  const body = new Uint8Array([...text.encode('{"message":"x'), ...bytes, ...text.encode('"}')]);
  expect(await problemIn(await notify(world, body))).toBe("400 malformed-request");
  expect(await world.events("NotificationRequested")).toEqual([]);
});

test("a body is read unchanged after an invalid one", async () => {
  await using world = await openApp();
  await notify(world, new Uint8Array([0xe2, 0x82]));
  await notify(world, { message: "größer 日本 👋🏽" });
  expect(await world.events("NotificationRequested")).toMatchObject([{ data: { message: "größer 日本 👋🏽" } }]);
});

test("an absent or empty body counts as an empty object, with any content type", async () => {
  await using world = await openApp();
  await world.authorize();
  for (const body of [undefined, ""]) {
    const response = await post(world.app, "/social/run", body, { headers: { "content-type": "text/plain" } });
    expect(response.status).toBe(202);
  }
  expect(world.triggers.map(({ dryRun }) => dryRun)).toEqual([false, false]);
});

test.each([{ text: { toString: "" } }, { text: [{ valueOf: 1, toString: null }] }, [{ toString: "" }]])(
  "a body with members named like methods is refused as invalid: %j",
  async (body) => {
    const answer = await post(shared.app, "/api/messaging", body, { token: TOKEN });
    expect([answer.status, await slugOf(answer)]).toEqual([422, "invalid-request"]);
  },
);

test("a caller that disconnects during the body causes no logged error", async () => {
  await using world = await openApp();
  const body = new ReadableStream({
    start: (controller) => controller.error(new Error("the connection was closed")),
  });
  const headers = { "content-type": "application/json", host: "localhost" };
  const answer = await world.app.handle(
    new Request("http://localhost/api/tracking/event", { method: "POST", headers, body }),
  );
  expect([answer.status, await slugOf(answer)]).toEqual([400, "malformed-request"]);
  expect(world.logged).toEqual([]);
});
