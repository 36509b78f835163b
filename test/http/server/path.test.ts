// On the memory harness.
import { describe, expect, test } from "bun:test";
import { createApp } from "../../../src/http/app.ts";
import { ask, GOOD, openApp, post, problemIn } from "../../harness/memory/app.ts";

/** Returns the parameters that a page receives from its path. */
async function parametersAt(path: string): Promise<unknown> {
  await using world = await openApp({ tokens: false });
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
])("%s has the parameters %j", async (path, parameters) => {
  expect(await parametersAt(path)).toEqual(parameters);
});

test.each(["/people/1/2", "/People/1", "/people/1/.hidden"])("%s meets no page", async (path) => {
  expect(await parametersAt(path)).toBeUndefined();
});

test.each(["%", "%zz", "%E0%A4%A", "%ff"])("%s encodes no text", async (segment) => {
  expect(await parametersAt(`/people/${segment}`)).toBeUndefined();
});

describe("a path with parameters", () => {
  test.each(["/links/go.example/a", "/links/%3Cb%3E/%E2%80%AE", "/links/a/b%2Fc", "/links/a/b/", "//links//a/b?x=1"])(
    "is served at %s",
    async (path) => {
      await using world = await openApp({ tokens: false });
      expect((await ask(world.app, path)).status).toBe(200);
    },
  );

  test.each(["/links/a", "/links/a/", "/links//a", "/links/a/b/c", "/links/a/%", "/activity/%ff"])(
    "nothing is at %s",
    async (path) => {
      await using world = await openApp({ tokens: false });
      expect(await problemIn(await ask(world.app, path))).toBe("404 not-found");
    },
  );

  test("answers any other method with 405 and its own", async () => {
    await using world = await openApp({ tokens: false });
    const response = await ask(world.app, "/links/go.example/a", { method: "POST" });
    expect([response.headers.get("allow"), await problemIn(response)]).toEqual(["GET, HEAD", "405 method-not-allowed"]);
  });
});

describe("a path with slashes that it does not need", () => {
  test.each(["/api/tracking/event/", "//api/tracking/event", "/api//tracking///event//"])(
    "is served at %s as without",
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

  test.each(["/social/health/", "//api/health", "/livez/", "//"])("is served at %s", async (path) => {
    await using world = await openApp({ tokens: false });
    expect((await ask(world.app, path)).status).toBe(200);
  });

  test("asks for a token as without, and for a host that is ours", async () => {
    await using world = await openApp();
    expect(await problemIn(await post(world.app, "//api/messaging/", { text: "x" }))).toBe("401 unauthorized");
    const foreign = { headers: { host: "evil.example" } };
    expect(await problemIn(await ask(world.app, "//social/health", foreign))).toStartWith("421 ");
  });
});
