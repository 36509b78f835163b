// These tests run parts of the service inside the test process.
import { afterAll, describe, expect, test } from "bun:test";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { ask, openApp, TOKEN } from "../harness/in-process/app.ts";

const ENDPOINTS = describeEndpoints();

const EVIL = "https://evil.example";

/**
 * Ways to request a path: with the token, without one, with a wrong token, with another method, with an invalid body,
 * and with another host.
 */
const WAYS = [
  { token: TOKEN },
  {},
  { token: "no-such-token-0123456789" },
  { method: "DELETE", token: TOKEN },
  { body: "{", token: TOKEN },
  { headers: { host: "evil.example" } },
];

const world = await openApp();
afterAll(() => world[Symbol.asyncDispose]());

describe.each([...ENDPOINTS, { method: "GET", path: "/nothing" }])("every response of $path", ({ path, method }) => {
  test.each(WAYS)("forbids caching, sniffing and cross-origin reads: request %j", async (way) => {
    const { headers, status } = await ask(world.app, path, {
      method,
      ...way,
      headers: { origin: EVIL, ...way.headers },
    });
    expect([status, headers.get("x-content-type-options")]).toEqual([status, "nosniff"]);
    expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
    // The API document is the same for all callers, so caches may store it.
    const isPublic = path === "/openapi.json" && status === 200;
    if (!isPublic) expect([status, headers.get("cache-control")]).toEqual([status, "no-store"]);
  });
});
