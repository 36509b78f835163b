// On the memory harness.
import { describe, expect, test } from "bun:test";
import { parametersOf, pathOf, segmentsOf } from "../../../src/http/server/endpoint.ts";
import { ask, openApp, problemIn } from "../../harness/memory/app.ts";

test.each([
  ["http://127.0.0.1:3000/", "/"],
  ["http://127.0.0.1:3000/people/%40ada?as=of#x", "/people/%40ada"],
  ["http://host/a//b?/c", "/a//b"],
])("the path of %s is %s, as it was sent", (url, path) => {
  expect(pathOf(url)).toBe(path);
});

test.each([
  ["/links/:domain/:code", "/links/go.example/a%2Fb", { domain: "go.example", code: "a/b" }],
  ["/people/:id", "/people/%40%D9%85", { id: "@\u0645" }],
  ["/people/:id", "/people/:id", { id: ":id" }],
  ["/people/:id", "/people/__proto__", { id: "__proto__" }],
  ["/people/:id", "/people/a+b", { id: "a+b" }],
  ["/people", "/people", {}],
])("%s is met by %s", (template, path, parameters) => {
  expect(parametersOf(template, path)).toEqual(parameters);
});

test.each([
  ["/people/:id", "/people/"],
  ["/people/:id", "/people"],
  ["/people/:id", "/people/1/2"],
  ["/people/:id", "/People/1"],
  ["/people", "/people/"],
])("%s is not met by %s", (template, path) => {
  expect([segmentsOf(template, path), parametersOf(template, path)]).toEqual([undefined, undefined]);
});

test.each(["%", "%zz", "%E0%A4%A", "%ff"])("%s encodes no text", (segment) => {
  expect(parametersOf("/people/:id", `/people/${segment}`)).toBeUndefined();
});

describe("a path with parameters", () => {
  test.each(["/links/go.example/a", "/links/%3Cb%3E/%E2%80%AE", "/links/a/b%2Fc"])("is served at %s", async (path) => {
    await using world = await openApp({ tokens: false });
    expect((await ask(world.app, path)).status).toBe(200);
  });

  test.each([
    "/links/",
    "/links/a",
    "/links/a/",
    "/links//a",
    "/links/a/b/",
    "/links/a/b/c",
    "/links/a/%",
    "/audit/%ff",
  ])("nothing is at %s", async (path) => {
    await using world = await openApp({ tokens: false });
    expect(await problemIn(await ask(world.app, path))).toBe("404 not-found");
  });

  test("answers any other method with 405 and its own", async () => {
    await using world = await openApp({ tokens: false });
    const response = await ask(world.app, "/links/go.example/a", { method: "POST" });
    expect([response.headers.get("allow"), await problemIn(response)]).toEqual(["GET, HEAD", "405 method-not-allowed"]);
  });
});
