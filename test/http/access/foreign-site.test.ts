// On the memory harness.
import { describe, expect, test } from "bun:test";
import { ask, GOOD, openApp, post, problemIn, TOKEN, type AppHarness } from "../../harness/memory/app.ts";

/** Headers that browsers send for another site's page; older browsers only send `Origin`. */
const FOREIGN = [
  { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
  { "sec-fetch-site": "same-site", origin: "http://localhost:8080" },
  { origin: "https://evil.example" },
  { origin: "https://localhost.evil.example" },
  { origin: "null" },
] as const;

const OWN = [
  {},
  { "sec-fetch-site": "same-origin", origin: "http://localhost" },
  { "sec-fetch-site": "none" },
  { origin: "http://localhost:3000" },
];

describe("a POST without a token", () => {
  test.each(FOREIGN)("that a browser sends for a page elsewhere, with %j, starts no run", async (headers) => {
    await using world = await openApp();
    await world.authorize();
    expect(await problemIn(await ask(world.app, "/social/run", { method: "POST", headers }))).toBe("403 foreign-site");
    expect(world.triggers).toEqual([]);
  });

  test.each(OWN)("of a program or a page of ours, with %j, starts one", async (headers) => {
    await using world = await openApp();
    await world.authorize();
    expect((await ask(world.app, "/social/run", { method: "POST", headers })).status).toBe(202);
  });
});

describe("the console where no token is configured", () => {
  test.each(FOREIGN)("gives nothing to a page elsewhere that fetches it, with %j", async (headers) => {
    await using world = await openApp({ tokens: false });
    for (const path of ["/people", "/events?only=position", "/api/audit/export"]) {
      expect(await problemIn(await ask(world.app, path, { headers }))).toBe("403 foreign-site");
    }
  });

  test.each(OWN)("is read by a page of ours, or a program, with %j", async (headers) => {
    await using world = await openApp({ tokens: false });
    expect((await ask(world.app, "/people", { headers })).status).toBe(200);
  });

  test("opens in a tab by a link from elsewhere", async () => {
    await using world = await openApp({ tokens: false });
    const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect((await ask(world.app, "/people", { headers })).status).toBe(200);
  });
});

describe("signing in to the console", () => {
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const signIn = (world: AppHarness, headers: Record<string, string>) =>
    post(world.app, "/session", `token=${TOKEN}`, { headers: { ...form, ...headers } });

  // Otherwise a caller with a token could make an operator work in the caller's name (login CSRF).
  test.each(FOREIGN)("from a page elsewhere, with %j and a right token, signs no browser in", async (headers) => {
    await using world = await openApp();
    const response = await signIn(world, headers);
    expect([response.headers.get("set-cookie"), await problemIn(response)]).toEqual([null, "403 foreign-site"]);
  });

  test.each(OWN)("from its own page, with %j, does", async (headers) => {
    await using world = await openApp();
    expect((await signIn(world, headers)).status).toBe(303);
  });

  test("its page lets the browser say where a form is from, to us alone", async () => {
    await using world = await openApp();
    const page = await ask(world.app, "/");
    expect([page.status, page.headers.get("referrer-policy")]).toEqual([401, "same-origin"]);
  });
});

test("a token counts wherever it is sent from: no page gets a browser to send one", async () => {
  await using world = await openApp();
  expect(
    (await post(world.app, "/api/messaging", GOOD["/api/messaging"], { token: TOKEN, headers: FOREIGN[0] })).status,
  ).toBe(200);
});

test("reading is open to links from elsewhere, which is how X sends a browser back", async () => {
  await using world = await openApp();
  expect((await ask(world.app, "/social/stats", { headers: FOREIGN[0] })).status).toBe(200);
});

test("where a token is wanted, a page elsewhere learns that first", async () => {
  await using world = await openApp({ authPolicy: "strict" });
  expect(await problemIn(await ask(world.app, "/social/run", { method: "POST", headers: FOREIGN[0] }))).toBe(
    "401 unauthorized",
  );
});
