// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { STREAMS_PER_READER_MAX } from "../../../src/http/access/limit-requests-and-streams.ts";
import { openEventStream } from "../../../src/http/streams/event-stream.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { ask, openApp, post, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";

const disposed = disposedAfterEach();

async function openEvents(given: Parameters<typeof openApp>[0] = {}): Promise<AppHarness> {
  return disposed(await openApp(given));
}

const MESSAGE: NewEvent = { type: "MessageRequested", data: { text: "hello" } };
const FORM = { "content-type": "application/x-www-form-urlencoded" };

async function sessionOf({ app }: AppHarness): Promise<Record<string, string>> {
  const signedIn = await post(app, "/session", `token=${TOKEN}`, { headers: FORM });
  return { cookie: signedIn.headers.get("set-cookie")?.split(";")[0] ?? "" };
}

const CALLERS = {
  "a token": async () => ({ authorization: `Bearer ${TOKEN}` }),
  "a session": sessionOf,
} satisfies Record<string, (harness: AppHarness) => Promise<Record<string, string>>>;

/** Reads an event stream to its end and returns the text. The text ends with `cut off` if the stream fails. */
async function restOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  let text = "";
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += new TextDecoder().decode(part.value);
    }
  } catch {
    text += "cut off";
  }
  return text;
}

for (const [caller, headersOf] of Object.entries(CALLERS)) {
  test.each(["/events?from=1", "/events?from=1&only=position"])(
    `%s of ${caller} ends without another event once the token is revoked`,
    async (path) => {
      const harness = await openEvents();
      await harness.append("requests", MESSAGE);
      const response = await ask(harness.app, path, { headers: await headersOf(harness) });
      const reader = response.body!.getReader();
      let seen = "";
      while (!seen.includes("id: 1\n")) seen += new TextDecoder().decode((await reader.read()).value);
      harness.deps.authentication.replace([{ name: "tests", sha256: "0".repeat(64) }]);
      await harness.append("requests", MESSAGE);
      expect(await restOf(reader)).toBe("");
      expect(harness.deps.load.streams).toBe(0);
    },
  );

  test(`an export of ${caller} is cut off once the token is revoked`, async () => {
    const harness = await openEvents();
    await harness.append("requests", ...Array.from({ length: 2_000 }, () => MESSAGE));
    const response = await ask(harness.app, "/api/audit/export", { headers: await headersOf(harness) });
    const reader = response.body!.getReader();
    await reader.read();
    harness.deps.authentication.replace([{ name: "tests", sha256: "0".repeat(64) }]);
    const rest = await restOf(reader);
    // The stream may have read one chunk ahead. So some events may come before it is cut off.
    expect(rest).toEndWith("cut off");
    expect(rest).not.toContain('"position":2000,');
    expect(harness.deps.load.streams).toBe(0);
    expect(harness.logged).toEqual([]);
  });
}

test.each(Object.entries(CALLERS))(
  "a stream of %s ends once the token loses the scope `read`",
  async (_caller, headersOf) => {
    const harness = await openEvents();
    await harness.append("requests", MESSAGE);
    const response = await ask(harness.app, "/events?from=1", { headers: await headersOf(harness) });
    const reader = response.body!.getReader();
    let seen = "";
    while (!seen.includes("id: 1\n")) seen += new TextDecoder().decode((await reader.read()).value);
    const { authentication } = harness.deps;
    authentication.replace(authentication.list().map((token) => ({ ...token, scopes: ["track"] as const })));
    await harness.append("requests", MESSAGE);
    expect(await restOf(reader)).toBe("");
    expect(harness.deps.load.streams).toBe(0);
  },
);

test("a stream of a session ends when the session expires", async () => {
  const harness = await openEvents();
  await harness.append("requests", MESSAGE);
  const response = await ask(harness.app, "/events?from=1", { headers: await sessionOf(harness) });
  const reader = response.body!.getReader();
  let seen = "";
  while (!seen.includes("id: 1\n")) seen += new TextDecoder().decode((await reader.read()).value);
  harness.now += 12 * 3_600_000;
  await harness.append("requests", MESSAGE);
  expect(await restOf(reader)).toBe("");
});

test("an idle stream of a revoked caller ends with the next heartbeat", async () => {
  const harness = await openEvents();
  const beats: (() => void)[] = [];
  let isKnown = true;
  let hasGone = false;
  const stream = openEventStream(harness.store, { from: 1 }, new AbortController().signal, {
    isKnown: () => isKnown,
    onGone: () => (hasGone = true),
    timer: (run) => {
      beats.push(run);
      return () => {};
    },
  });
  const rest = restOf(stream.getReader());
  while (beats.length < 1) await new Promise(setImmediate);
  isKnown = false;
  beats[0]?.();
  expect(await rest).toBe("retry: 2000\n\n");
  expect(hasGone).toBe(true);
});

test("streams are limited per caller, or per address without configured tokens", async () => {
  const harness = await openEvents();
  const { load } = harness.deps;
  const headers = await sessionOf(harness);
  const streams = await Promise.all(
    Array.from({ length: STREAMS_PER_READER_MAX }, (_, index) =>
      ask(harness.app, "/events", index % 2 === 0 ? { token: TOKEN } : { headers }),
    ),
  );
  for (const asked of [{ token: TOKEN }, { headers }]) {
    const refused = await ask(harness.app, "/events", asked);
    // If the service did not refuse this stream, the next line would read it for ever.
    expect(refused.status).toBe(429);
    expect([refused.headers.get("retry-after"), await problemIn(refused)]).toEqual(["5", "429 too-many-streams"]);
  }
  load.openStream("another")();
  for (const { body } of streams) await body?.cancel();
  expect(load.streams).toBe(0);

  const openly = await openEvents({ tokens: false, trustedProxies: ["127.0.0.1"] });
  const ends = Array.from({ length: STREAMS_PER_READER_MAX }, () => openly.deps.load.openStream("address 127.0.0.1"));
  expect(await problemIn(await ask(openly.app, "/events"))).toBe("429 too-many-streams");
  ends[0]?.();
  // Ending a stream twice has no effect.
  ends[0]?.();
  expect(openly.deps.load.streams).toBe(STREAMS_PER_READER_MAX - 1);
  const response = await ask(openly.app, "/events");
  expect(response.status).toBe(200);
  await response.body?.cancel();
});
