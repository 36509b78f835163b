// These tests run parts of the service inside the test process.
import { afterAll, expect, test } from "bun:test";
import * as fc from "fast-check";
import { ask, GOOD, openApp, post, slugOf, TOKEN } from "../harness/in-process/app.ts";
import { countCases } from "../harness/case-count.ts";

const world = await openApp({ channels: ["ads", "messaging"], hasTemplate: false });
afterAll(() => world[Symbol.asyncDispose]());
await world.authorize();

/**
 * Problems that this service may answer with 503, because its channel, message template or network is not configured.
 */
const DOCUMENTED = ["channel-not-configured", "no-message-template", "network-not-configured"];

const path = fc.constantFrom(...(Object.keys(GOOD) as (keyof typeof GOOD)[]), "/session" as const);
const key = fc.option(fc.string({ unit: fc.constantFrom("a", "b", '"', "\\", " ", ",", "é") }), { nil: undefined });
const token = fc.option(fc.constantFrom(TOKEN, "wrong"), { nil: undefined, freq: 3 });

const headersOf = (type: string | undefined, idempotencyKey: string | undefined): Record<string, string> => ({
  ...(type === undefined ? {} : { "content-type": type }),
  ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
});

/** Expects no status of 500 or more, except a 503 because something is not configured. */
async function expectNoFault(response: Response): Promise<void> {
  world.now += 60_001;
  if (response.status < 500) return;
  expect(response.status).toBe(503);
  expect(DOCUMENTED).toContain(await slugOf(response));
}

test("an arbitrary JSON body causes no undocumented 5xx", async () => {
  const body = fc.json({ maxDepth: 6, stringUnit: "binary" });
  await fc.assert(
    fc.asyncProperty(path, body, key, token, async (to, json, idempotencyKey, caller) => {
      const headers = headersOf(undefined, idempotencyKey);
      await expectNoFault(
        await post(world.app, to, json, { headers, ...(caller === undefined ? {} : { token: caller }) }),
      );
    }),
    { numRuns: countCases(1_000) },
  );
});

test("a valid body with one arbitrary field causes no undocumented 5xx", async () => {
  const change = fc.record({ field: fc.option(fc.string(), { nil: undefined }), at: fc.nat(), value: fc.jsonValue() });
  const text = fc.string({ unit: "binary", minLength: 1, maxLength: 300 });
  await fc.assert(
    fc.asyncProperty(path, change, fc.option(text, { nil: undefined }), async (to, { field, at, value }, string) => {
      const good: object = to === "/session" ? { token: "x" } : GOOD[to];
      const names = Object.keys(good);
      const name = field ?? names[at % Math.max(1, names.length)] ?? "text";
      await expectNoFault(await post(world.app, to, { ...good, [name]: string ?? value }, { token: TOKEN }));
    }),
    { numRuns: countCases(1_000) },
  );
});

test("arbitrary bytes of any content type cause no undocumented 5xx", async () => {
  const type = fc.option(
    fc.oneof(
      fc.constantFrom("application/json", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data"),
      fc.stringMatching(/^[!-~]{0,40}$/),
    ),
    { nil: undefined },
  );
  await fc.assert(
    fc.asyncProperty(
      path,
      fc.uint8Array({ maxLength: 200 }),
      type,
      key,
      async (to, bytes, contentType, idempotencyKey) => {
        const headers = headersOf(contentType, idempotencyKey);
        await expectNoFault(await post(world.app, to, bytes, { token: TOKEN, headers }));
      },
    ),
    { numRuns: countCases(1_000) },
  );
});

test("an arbitrary query and cookie cause no undocumented 5xx", async () => {
  const text = fc.stringMatching(/^[!-~]{0,60}$/);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("/social/callback", "/social/me", "/", "/api/health", "/x"),
      text,
      text,
      async (to, query, cookie) => {
        const headers = { cookie: `reachlog_session=${cookie}; reachlog_oauth=${query}`, accept: cookie };
        await expectNoFault(await ask(world.app, `${to}?${encodeURI(query)}`, { headers }));
      },
    ),
    { numRuns: countCases(500) },
  );
});
