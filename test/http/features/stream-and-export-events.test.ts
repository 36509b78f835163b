// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { STREAMS_MAX } from "../../../src/http/access/limit-requests-and-streams.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { ask, openApp, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";

const disposed = disposedAfterEach();

async function openEvents(given: Parameters<typeof openApp>[0] = {}): Promise<AppHarness> {
  return disposed(await openApp(given));
}

const MESSAGE: NewEvent = { type: "MessageRequested", data: { text: "hello" } };

/** Reads the positions of the first `count` events of an open stream, then closes it. */
async function positionsIn(response: Response, count: number): Promise<readonly number[]> {
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const positions: number[] = [];
  for await (const bytes of response.body ?? []) {
    for (const [, id] of new TextDecoder().decode(bytes).matchAll(/^id: (\d+)$/gm)) positions.push(Number(id));
    if (positions.length >= count) break;
  }
  return positions;
}

test("a stream begins at the next event, at `from`, or after the Last-Event-ID", async () => {
  const harness = await openEvents();
  await harness.append("requests", MESSAGE, MESSAGE, MESSAGE);
  const follow = (path: string, headers = {}) => ask(harness.app, path, { token: TOKEN, headers });
  expect(await positionsIn(await follow("/events?from=2"), 2)).toEqual([2, 3]);
  expect(await positionsIn(await follow("/events?from=1", { "last-event-id": "2" }), 1)).toEqual([3]);
  const next = await follow("/events");
  await harness.append("requests", MESSAGE);
  expect(await positionsIn(next, 1)).toEqual([4]);
});

test("a stream holds only the requested types and stream", async () => {
  const harness = await openEvents();
  await harness.append("requests", MESSAGE);
  await harness.append("outreach", { type: "RunStarted", data: { run_id: "r", dry_run: true } });
  const follow = (query: string) => ask(harness.app, `/events?from=1&${query}`, { token: TOKEN });
  expect(await positionsIn(await follow("type=RunStarted"), 1)).toEqual([2]);
  expect(await positionsIn(await follow("type=RunStarted&type=MessageRequested"), 2)).toEqual([1, 2]);
  expect(await positionsIn(await follow("stream=outreach"), 1)).toEqual([2]);
});

test.each(["from=-1", "from=abc", "from=", "type=Nothing", "only=", "only=events"])(
  "the query %s is refused",
  async (query) => {
    const harness = await openEvents();
    expect((await ask(harness.app, `/events?${query}`, { token: TOKEN })).status).toBe(422);
  },
);

test("with only=position a stream sends the newest position alone", async () => {
  const harness = await openEvents();
  await harness.append("requests", MESSAGE, MESSAGE);
  const stream = await ask(harness.app, "/events?only=position&from=1", { token: TOKEN });
  expect(await positionsIn(stream, 1)).toEqual([2]);
});

test("a stream requires a token or a session", async () => {
  const harness = await openEvents();
  expect((await ask(harness.app, "/events")).status).toBe(401);
  expect((await ask(harness.app, "/events", { token: "not-a-token" })).status).toBe(401);
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const signedIn = await ask(harness.app, "/session", { method: "POST", headers, body: `token=${TOKEN}` });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const response = await ask(harness.app, "/events", { headers: { cookie } });
  expect(response.status).toBe(200);
  await response.body?.cancel();
});

test("a stream beyond the limit is refused until another one ends", async () => {
  const harness = await openEvents();
  const { load } = harness.deps;
  const ends = Array.from({ length: STREAMS_MAX - 1 }, (_, index) => load.openStream(`reader ${index}`));
  const last = await ask(harness.app, "/events", { token: TOKEN });
  expect(last.status).toBe(200);
  expect((await ask(harness.app, "/events", { token: TOKEN })).status).toBe(503);
  await last.body?.cancel();
  const another = await ask(harness.app, "/events", { token: TOKEN });
  expect(another.status).toBe(200);
  await another.body?.cancel();
  for (const end of ends) end();
  expect(load.streams).toBe(0);
});

test("HEAD returns the headers and opens no stream", async () => {
  const harness = await openEvents();
  const response = await ask(harness.app, "/events", { method: "HEAD", token: TOKEN });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  expect(harness.deps.load.streams).toBe(0);
});
