// These tests run parts of the service inside the test process.
import { afterAll, describe, expect, test } from "bun:test";
import { createApp } from "../../../src/http/app.ts";
import { ask, GOOD, openApp, post, problemIn } from "../../harness/in-process/app.ts";

const world = await openApp({ tokens: false });
afterAll(() => world[Symbol.asyncDispose]());

/** Requests the path, and returns the parameters that the console takes from it and passes to its page. */
async function parametersAt(path: string): Promise<unknown> {
  let parameters: unknown;
  const console: typeof world.deps.console = {
    ...world.deps.console,
    render(_page, visit) {
      parameters = visit.parameters;
      return Promise.resolve(undefined);
    },
  };
  expect(await problemIn(await ask(createApp({ ...world.deps, console }), path))).toBe("404 not-found");
  return parameters;
}

test.each([
  ["/links/go.example/a%2Fb", { domain: "go.example", short_code: "a/b" }],
  ["/people/%40%D9%85", { id: "@\u0645" }],
  ["/people/%40ada?as=of", { id: "@ada" }],
  ["/people/:id", { id: ":id" }],
  ["/people/__proto__", { id: "__proto__" }],
  ["/people/a+b", { id: "a+b" }],
  ["/people", {}],
  ["/people/", {}],
  ["//people//1/", { id: "1" }],
])("a page at %s receives the parameters %j", async (path, parameters) => {
  expect(await parametersAt(path)).toEqual(parameters);
});

test.each(["/people/1/2", "/People/1", "/people/1/.hidden"])("%s matches no page", async (path) => {
  expect(await parametersAt(path)).toBeUndefined();
});

test.each(["%", "%zz", "%E0%A4%A", "%ff"])("a segment with the invalid escape %s matches no page", async (segment) => {
  expect(await parametersAt(`/people/${segment}`)).toBeUndefined();
});

describe("a path with parameters", () => {
  test.each(["/links/go.example/a", "/links/%3Cb%3E/%E2%80%AE", "/links/a/b%2Fc", "/links/a/b/", "//links//a/b?x=1"])(
    "is served at %s",
    async (path) => {
      expect((await ask(world.app, path)).status).toBe(200);
    },
  );

  test.each(["/links/a", "/links/a/", "/links//a", "/links/a/b/c", "/links/a/%", "/activity/%ff"])(
    "is not found at %s",
    async (path) => {
      expect(await problemIn(await ask(world.app, path))).toBe("404 not-found");
    },
  );

  test("answers another method with 405 and the allowed methods", async () => {
    const response = await ask(world.app, "/links/go.example/a", { method: "POST" });
    expect([response.headers.get("allow"), await problemIn(response)]).toEqual(["GET, HEAD", "405 method-not-allowed"]);
  });
});

describe("a path with extra slashes", () => {
  test.each(["/api/tracking/event/", "//api/tracking/event", "/api//tracking///event//"])(
    "accepts only a POST, as without them, at %s",
    async (path) => {
      await using world = await openApp();
      const response = await post(world.app, path, GOOD["/api/tracking/event"]);
      const [click] = await world.events("LinkClicked");
      expect([response.status, await response.json()]).toEqual([202, { id: click?.id }]);
      expect(click?.data).toMatchObject(GOOD["/api/tracking/event"]);
      const { status, headers } = await ask(world.app, path, { method: "GET" });
      expect([status, headers.get("allow")]).toEqual([405, "POST"]);
    },
  );

  test.each(["/social/health/", "//api/health", "/livez/", "//"])("answers a GET at %s", async (path) => {
    expect((await ask(world.app, path)).status).toBe(200);
  });

  test("still requires a token and a known host", async () => {
    await using world = await openApp();
    expect(await problemIn(await post(world.app, "//api/messaging/", { text: "x" }))).toBe("401 unauthorized");
    const foreign = { headers: { host: "evil.example" } };
    expect(await problemIn(await ask(world.app, "//social/health", foreign))).toStartWith("421 ");
  });
});
