// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { ask, openApp, post, problemIn } from "../../harness/in-process/app.ts";
import { oddIn } from "../../harness/unexpected-html.ts";

/** The Accept header of a browser that follows a link. */
const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

const REFUSED = [
  ["an unknown path", "/nowhere/%3Cb%3Ecanary", "GET", 404],
  ["an unknown event", "/activity/999", "GET", 404],
  ["an unsupported method", "/people", "POST", 405],
] as const;

describe("a refusal", () => {
  test.each(REFUSED)("is a page for a browser: %s", async (_what, path, method, status) => {
    await using world = await openApp({ tokens: false });
    const response = await ask(world.app, path, { method, headers: BROWSER });
    const page = await response.text();
    expect([response.status, response.headers.get("content-type")]).toEqual([status, "text/html; charset=utf-8"]);
    expect(response.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page).toContain('<a href="/">To the console</a>');
    expect(page).toContain(response.headers.get("x-request-id") ?? "no id");
    expect(page).not.toContain("canary");
    expect(await oddIn(page)).toEqual([]);
  });

  test.each(REFUSED)("is a problem document for programs: %s", async (_what, path, method, status) => {
    await using world = await openApp({ tokens: false });
    for (const accept of ["*/*", "application/json", "application/problem+json, text/html;q=0.1", "text/plain"]) {
      const response = await ask(world.app, path, { method, headers: { accept } });
      expect(await problemIn(response)).toStartWith(`${status} `);
    }
  });

  test("keeps its headers on a page", async () => {
    await using world = await openApp();
    const headers = { ...BROWSER, host: "localhost" };
    expect((await ask(world.app, "/people", { method: "POST", headers })).headers.get("allow")).toBe("GET, HEAD");
    const wanted = (await ask(world.app, "/social/me", { headers })).headers.get("www-authenticate");
    expect(wanted).toStartWith("OAuth ");
  });

  test("tells a browser that its form came from another site", async () => {
    await using world = await openApp();
    const foreign = { ...BROWSER, "sec-fetch-site": "cross-site", "content-type": "application/x-www-form-urlencoded" };
    const response = await post(world.app, "/session", "token=x", { headers: foreign });
    expect([response.status, response.headers.get("content-type")]).toEqual([403, "text/html; charset=utf-8"]);
    expect(await response.text()).toContain("A page of another site may not do this.");
  });

  test("hides the details of an internal fault and logs them", async () => {
    await using world = await openApp({ tokens: false });
    Object.assign(world.deps.console, { render: () => Promise.reject(new Error("the inside")) });
    const response = await ask(world.app, "/people", { headers: BROWSER });
    const page = await response.text();
    expect([response.status, response.headers.get("content-type")]).toEqual([500, "text/html; charset=utf-8"]);
    expect(page).toContain("the service logged it");
    expect(page).not.toContain("the inside");
    expect(world.logged.join("")).toContain("the inside");
  });
});

test("the sign-in page says where to find a token", async () => {
  await using world = await openApp();
  const page = await (await ask(world.app, "/", { headers: BROWSER })).text();
  for (const words of ["the demo print a token", "reachlog token new NAME", "API_TOKENS", "API_TOKENS_FILE"]) {
    expect(page).toContain(words);
  }
});
