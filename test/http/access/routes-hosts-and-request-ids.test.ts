// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { listHosts } from "../../../src/http/server/listen.ts";
import { describeEndpoints } from "../../../src/http/endpoints.ts";
import { allowOf } from "../attacks/routes.ts";
import { ask, GOOD, openApp, post, problemIn, TOKEN } from "../../harness/in-process/app.ts";

test("every path answers 405 with its allowed methods to any other method", async () => {
  await using world = await openApp();
  for (const { path, method } of describeEndpoints()) {
    const allow = allowOf(path);
    for (const other of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter((name) => !allow.includes(name))) {
      const response = await ask(world.app, path, { method: other, token: TOKEN });
      expect([path, response.headers.get("allow"), await problemIn(response)]).toEqual([
        path,
        allow,
        "405 method-not-allowed",
      ]);
    }
    const own = await ask(world.app, path, { method, token: TOKEN });
    expect([path, own.status]).not.toEqual([path, 405]);
  }
});

test("HEAD answers like GET, without a body", async () => {
  await using world = await openApp();
  for (const path of ["/social/health", "/social/stats", "/api/health", "/"]) {
    const [get, head] = [await ask(world.app, path), await ask(world.app, path, { method: "HEAD" })];
    expect([head.status, head.headers.get("content-type")]).toEqual([get.status, get.headers.get("content-type")]);
    expect(await head.text()).toBe("");
    expect(head.headers.get("content-length")).toBe(String((await get.bytes()).length));
  }
});

test.each(["/nothing", "/social", "/social/", "/Social/health", "/social/%68ealth", "/api"])(
  "%s is not found",
  async (path) => {
    await using world = await openApp();
    expect(await problemIn(await ask(world.app, path))).toBe("404 not-found");
  },
);

test("a query does not change the route", async () => {
  await using world = await openApp();
  expect((await ask(world.app, "/social/health?x=/api/health")).status).toBe(200);
});

describe("the host", () => {
  test.each([
    ["localhost", 200],
    ["LOCALHOST:3000", 200],
    ["reach.example", 200],
    ["[::1]:8080", 200],
    ["evil.example", 421],
    ["localhost.evil.example", 421],
    ["localhost:3000:80", 421],
    ["x", 421],
    ["", 421],
  ])("%j is answered with %i", async (host, status) => {
    await using world = await openApp({ hosts: ["localhost", "reach.example", "[::1]"] });
    const response = await ask(world.app, "/social/health", { headers: { host } });
    expect(response.status).toBe(status);
    if (status === 421) expect(await problemIn(response)).toBe("421 misdirected-request");
  });

  test("is not checked for probes", async () => {
    await using world = await openApp({ hosts: ["reach.example"] });
    const headers = { host: "10.1.2.3:3000" };
    for (const path of ["/livez", "/readyz"]) {
      expect([path, (await ask(world.app, path, { headers })).status]).toEqual([path, 200]);
    }
    expect((await ask(world.app, "/api/health", { headers })).status).toBe(421);
  });

  const publicUrl = "https://Reach.example";
  test.each([
    ["127.0.0.1", [], ["127.0.0.1", "localhost", "[::1]", "reach.example"]],
    ["0.0.0.0", ["10.0.0.5:8080", "Other.example"], ["0.0.0.0", "10.0.0.5", "other.example", "reach.example"]],
    ["fd00::5", [], ["[fd00::5]"]],
    ["fd00:1:2:3:4:5:6:7", ["[fd00::6]:3000"], ["[fd00:1:2:3:4:5:6:7]", "[fd00::6]"]],
  ])("matches the configured names, bound to %s with %j allowed", (host, allowedHosts, served) => {
    const hosts = listHosts({ host, allowedHosts, publicUrl, port: 3000 } as unknown as Parameters<
      typeof listHosts
    >[0]);
    expect(served.filter((name) => !hosts.has(name))).toEqual([]);
    expect(hosts.has("evil.example")).toBe(false);
  });
});

describe("a request's id and trace", () => {
  const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  test("are accepted from the caller, returned, and recorded with the event", async () => {
    await using world = await openApp();
    const headers = { "x-request-id": "order-7.b_2", traceparent: TRACE };
    const response = await post(world.app, "/api/tracking/event", GOOD["/api/tracking/event"], { headers });
    expect([response.headers.get("x-request-id"), response.headers.get("traceparent")]).toEqual(["order-7.b_2", TRACE]);
    const [event] = await world.events("LinkClicked");
    expect(event?.meta).toMatchObject({ request_id: "order-7.b_2", traceparent: TRACE, caller: "anonymous" });
  });

  test.each(["", "a b", "a/b", "ä", "x".repeat(129), '"a"'])("are replaced if the id is %j", async (id) => {
    await using world = await openApp();
    const response = await ask(world.app, "/nothing", { headers: { "x-request-id": encodeURI(id) && id } }).catch(
      () => undefined,
    );
    // No client can send such a header: `fetch` itself refuses it. So there is no answer to check.
    if (response === undefined) return;
    expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f-]{17}$/);
  });

  test("are generated for each request that has none, also for refused ones", async () => {
    await using world = await openApp();
    const answers = [
      await ask(world.app, "/nothing"),
      await ask(world.app, "/social/health", { headers: { host: "x" } }),
    ];
    const ids = answers.map(({ headers }) => headers.get("x-request-id"));
    const traces = answers.map(({ headers }) => headers.get("traceparent"));
    expect(new Set([...ids, ...traces]).size).toBe(4);
    for (const trace of traces) expect(trace).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  });
});

describe("unauthenticated requests", () => {
  const from = (address: string) => ({ requestIP: () => ({ address }), timeout() {} });

  test("are limited per address, except from the loopback address or with a token", async () => {
    await using world = await openApp({ rateLimitPerMinute: 2 });
    const as = async (address: string, token?: string): Promise<number> => {
      Object.assign(world.app, { server: from(address) });
      return (await ask(world.app, "/social/health", token === undefined ? {} : { token })).status;
    };
    const stranger = "203.0.113.9";
    expect([await as(stranger), await as(stranger), await as(stranger)]).toEqual([200, 200, 429]);
    expect([await as("203.0.113.10"), await as(stranger, TOKEN)]).toEqual([200, 200]);
    expect([await as("127.0.0.1"), await as("127.0.0.1"), await as("127.0.0.1")]).toEqual([200, 200, 200]);
    world.now += 60_000;
    expect(await as(stranger)).toBe(200);
  });

  test("receive Retry-After once they are limited", async () => {
    await using world = await openApp({ rateLimitPerMinute: 0 });
    Object.assign(world.app, { server: from("203.0.113.9") });
    world.now += 1;
    const response = await ask(world.app, "/social/health");
    expect(response.headers.get("retry-after")).toBe("60");
    expect(await problemIn(response)).toBe("429 too-many-requests");
  });
});
