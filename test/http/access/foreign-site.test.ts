// These tests run parts of the service inside the test process.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ask, GOOD, openApp, post, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";

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
  test.each(FOREIGN)("from a foreign page, with %j, starts no run", async (headers) => {
    await using world = await openApp();
    await world.authorize();
    expect(await problemIn(await ask(world.app, "/social/run", { method: "POST", headers }))).toBe("403 foreign-site");
    expect(world.triggers).toEqual([]);
  });

  test.each(OWN)("from a program or an own page, with %j, starts a run", async (headers) => {
    await using world = await openApp();
    await world.authorize();
    expect((await ask(world.app, "/social/run", { method: "POST", headers })).status).toBe(202);
  });
});

describe("the console without configured tokens", () => {
  let world: AppHarness;
  beforeAll(async () => {
    world = await openApp({ tokens: false });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test.each(FOREIGN)("refuses a fetch by a foreign page, with %j", async (headers) => {
    for (const path of ["/people", "/events?only=position", "/api/audit/export"]) {
      expect(await problemIn(await ask(world.app, path, { headers }))).toBe("403 foreign-site");
    }
  });

  test.each(OWN)("answers an own page or a program, with %j", async (headers) => {
    expect((await ask(world.app, "/people", { headers })).status).toBe(200);
  });

  test("opens by a link from another site", async () => {
    const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect((await ask(world.app, "/people", { headers })).status).toBe(200);
  });
});

describe("signing in to the console", () => {
  let world: AppHarness;
  beforeAll(async () => {
    world = await openApp();
  });
  afterAll(() => world[Symbol.asyncDispose]());
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const signIn = (headers: Record<string, string>) =>
    post(world.app, "/session", `token=${TOKEN}`, { headers: { ...form, ...headers } });

  // If this were served, a caller with a token could make an operator work in the caller's name (login CSRF).
  test.each(FOREIGN)("is refused from a foreign page, with %j and a valid token", async (headers) => {
    const response = await signIn(headers);
    expect([response.headers.get("set-cookie"), await problemIn(response)]).toEqual([null, "403 foreign-site"]);
  });

  test.each(OWN)("succeeds from an own page, with %j", async (headers) => {
    expect((await signIn(headers)).status).toBe(303);
  });

  test("has a page that sends the referrer to its own origin only", async () => {
    const page = await ask(world.app, "/");
    expect([page.status, page.headers.get("referrer-policy")]).toEqual([401, "same-origin"]);
  });
});

test("a request with a token is accepted from any site", async () => {
  await using world = await openApp();
  expect(
    (await post(world.app, "/api/messaging", GOOD["/api/messaging"], { token: TOKEN, headers: FOREIGN[0] })).status,
  ).toBe(200);
});

test("a read is accepted from any site", async () => {
  await using world = await openApp();
  expect((await ask(world.app, "/social/stats", { headers: FOREIGN[0] })).status).toBe(200);
});

test("a foreign page without a required token is answered with 401", async () => {
  await using world = await openApp({ authPolicy: "strict" });
  expect(await problemIn(await ask(world.app, "/social/run", { method: "POST", headers: FOREIGN[0] }))).toBe(
    "401 unauthorized",
  );
});
