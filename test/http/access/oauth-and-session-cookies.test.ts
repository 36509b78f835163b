// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { createAuthorizationCookie } from "../../../src/http/access/encrypted-cookie.ts";
import { createAuthentication } from "../../../src/http/access/bearer-tokens.ts";
import { createSessions } from "../../../src/http/access/session.ts";
import {
  ask,
  MASTER_KEY,
  openApp,
  post,
  problemIn,
  TOKEN,
  createClaims,
  type AppHarness,
} from "../../harness/in-process/app.ts";

const OTHER_KEY = new Uint8Array(32).fill(9);
const PLAIN = new URL("http://localhost");
const TLS = new URL("https://localhost");
const SESSIONS = { masterKey: MASTER_KEY, site: PLAIN, isLocal: true, claims: createClaims(), clock: () => 0 };

/** The `name=value` part of a Set-Cookie header. */
const pairOf = (setCookie: string): string => setCookie.split(";", 1)[0] ?? "";

/** Changes one character in the middle of the cookie's value. */
function tampered(pair: string): string {
  const at = pair.length - 20;
  return `${pair.slice(0, at)}${pair[at] === "A" ? "B" : "A"}${pair.slice(at + 1)}`;
}

describe("the authorization cookie", () => {
  const clock = { now: 1_000_000 };
  const cookieWith = (key: Uint8Array, secure = false) =>
    createAuthorizationCookie(key, secure ? TLS : PLAIN, () => clock.now);
  const authorization = { state: "the-state", verifier: "the-verifier" };
  const valueOf = (setCookie: string) => pairOf(setCookie).slice("reachlog_oauth=".length);

  const opened = (pair: string, key = MASTER_KEY) =>
    cookieWith(key).read(new Request("http://localhost/social/callback", { headers: { cookie: pair } }));

  test("holds state and verifier, encrypted, for ten minutes", () => {
    const set = cookieWith(MASTER_KEY).give(authorization);
    expect(set).toMatch(/^reachlog_oauth=[\w-]+; Max-Age=600; Path=\/social; HttpOnly; SameSite=Lax$/);
    expect(Buffer.from(valueOf(set), "base64url").toString("latin1")).not.toContain("the-");
    expect(opened(pairOf(set))).toEqual(authorization);
    clock.now += 599_999;
    expect(opened(pairOf(set))).toEqual(authorization);
    clock.now += 1;
    expect(opened(pairOf(set))).toBeUndefined();
  });

  test("is rejected if it is changed, absent or encrypted with another key", () => {
    const pair = pairOf(cookieWith(MASTER_KEY).give(authorization));
    expect(opened(tampered(pair))).toBeUndefined();
    expect(opened(pair, OTHER_KEY)).toBeUndefined();
    for (const value of ["", "x", "=", "%00"]) expect(opened(`reachlog_oauth=${value}`)).toBeUndefined();
    expect(opened("")).toBeUndefined();
  });

  test("is found among other cookies by its full name", () => {
    const pair = pairOf(cookieWith(MASTER_KEY).give(authorization));
    const other = pair.replace("oauth=", "oauth=A");
    for (const among of [`b=2; ${pair}`, `b=2;${pair};c=3`, `x${other}; ${pair}`, `${pair}; ${other}`]) {
      expect(opened(among)).toEqual(authorization);
    }
    for (const none of ["reachlog_oauth", pair.toUpperCase(), `x${pair}`, `${other}; ${pair}`]) {
      expect(opened(none)).toBeUndefined();
    }
  });

  test("is Secure and has the __Host- prefix over TLS", () => {
    expect(cookieWith(MASTER_KEY, true).give(authorization)).toMatch(
      /^__Host-reachlog_oauth=[\w-]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    expect(cookieWith(MASTER_KEY, true).cleared).toBe(
      "__Host-reachlog_oauth=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax",
    );
  });
});

describe("the console", () => {
  test("accepts a session for twelve hours after signing in with a token", async () => {
    await using world = await openApp();
    const page = (cookie: string) => ask(world.app, "/", { headers: { cookie } });
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const signedIn = await post(world.app, "/session", `token=${TOKEN}`, { headers: form });
    const set = signedIn.headers.get("set-cookie") ?? "";
    expect([signedIn.status, signedIn.headers.get("location")]).toEqual([303, "/"]);
    expect(set).toMatch(/^reachlog_session=[\w-]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/);

    expect((await page(pairOf(set))).status).toBe(200);
    expect((await page(tampered(pairOf(set)))).status).toBe(401);
    expect((await page("")).status).toBe(401);
    world.now += 12 * 3_600_000;
    expect((await page(pairOf(set))).status).toBe(401);
  });

  const FORM = { "content-type": "application/x-www-form-urlencoded" };
  const signIn = (world: AppHarness, fields: Record<string, string>, headers = {}) =>
    post(world.app, "/session", new URLSearchParams({ token: TOKEN, ...fields }).toString(), {
      headers: { ...FORM, ...headers },
    });

  test("leads to the requested page after signing in, also after a wrong token", async () => {
    await using world = await openApp();
    const asked = "/people?status=sent&search=%22a%3Cb";
    const pages = [ask(world.app, asked), signIn(world, { token: "not-a-token", back: asked })];
    for (const page of await Promise.all(pages)) {
      const back = /name="back" value="([^"]*)"/.exec(await page.text())?.[1]?.replaceAll("&amp;", "&") ?? "";
      expect(back).toBe(asked);
      expect((await signIn(world, { back })).headers.get("location")).toBe(asked);
    }
  });

  test.each([
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "evil",
    "",
    "/a b",
    "/\t/evil.example",
    "/ü",
  ])("refuses to lead to %j after signing in", async (back) => {
    await using world = await openApp();
    const answer = await signIn(world, { back });
    expect([await problemIn(answer), answer.headers.get("location")]).toEqual(["422 invalid-request", null]);
  });

  test("shows a sign-in form without a return page if the address is too long", async () => {
    await using world = await openApp();
    const page = await (await ask(world.app, `/people?search=${"a".repeat(2_000)}`)).text();
    expect(page).toContain('name="token"');
    expect(page).not.toContain('name="back"');
  });

  test("accepts a token with surrounding white space", async () => {
    await using world = await openApp();
    expect((await signIn(world, { token: ` ${TOKEN}\r\n` })).status).toBe(303);
  });

  test("refuses to sign in over plain http if its address is https", async () => {
    await using world = await openApp({
      publicUrl: "https://reach.example",
      hosts: ["localhost", "10.0.0.5", "reach.example"],
    });
    const from = (origin: string) => signIn(world, { back: "/people" }, { origin });
    const refused = await from("http://10.0.0.5:3000");
    expect([refused.status, refused.headers.get("set-cookie")]).toEqual([401, null]);
    expect(await refused.text()).toContain('Open <a href="https://reach.example/people">https://reach.example</a>');
    for (const origin of ["https://reach.example", "http://localhost:3000"]) {
      expect([origin, (await from(origin)).status]).toEqual([origin, 303]);
    }
  });

  test("uses a separate session cookie for each port of a host", async () => {
    await using world = await openApp();
    const { authentication } = world.deps;
    const services = [
      ["3000", MASTER_KEY],
      ["3001", OTHER_KEY],
    ] as const;
    const [one, other] = services.map(([port, masterKey]) =>
      createSessions({ ...SESSIONS, masterKey, authentication, site: new URL(`http://localhost:${port}`) }),
    ) as [ReturnType<typeof createSessions>, ReturnType<typeof createSessions>];
    const [first, second] = [one, other].map((sessions) => pairOf(sessions.signIn(TOKEN) ?? "")) as [string, string];
    const jar = new Map([first, second].map((pair) => [pair.split("=")[0], pair]));
    const headers = new Headers({ cookie: [...jar.values()].join("; ") });
    expect([one.admits({ headers }), other.admits({ headers })]).toEqual([true, true]);
  });

  test("rejects a session encrypted with another key", async () => {
    await using world = await openApp();
    const { authentication } = world.deps;
    const other = createSessions({ ...SESSIONS, masterKey: OTHER_KEY, authentication, clock: () => world.now });
    const cookie = pairOf(other.signIn(TOKEN) ?? "");
    expect((await ask(world.app, "/", { headers: { cookie } })).status).toBe(401);
  });

  test("ends a session when its token is revoked", async () => {
    await using world = await openApp();
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const signedIn = await post(world.app, "/session", `token=${TOKEN}`, { headers });
    const cookie = pairOf(signedIn.headers.get("set-cookie") ?? "");
    const page = () => ask(world.app, "/", { headers: { cookie } });
    expect((await page()).status).toBe(200);
    world.deps.authentication.replace([{ name: "tests", sha256: "0".repeat(64) }]);
    expect((await page()).status).toBe(401);
  });

  test("ends a session when its token may no longer read", async () => {
    await using world = await openApp();
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const signedIn = await post(world.app, "/session", `token=${TOKEN}`, { headers });
    const cookie = pairOf(signedIn.headers.get("set-cookie") ?? "");
    const { authentication } = world.deps;
    authentication.replace(authentication.list().map((token) => ({ ...token, scopes: ["track"] })));
    expect((await ask(world.app, "/", { headers: { cookie } })).status).toBe(401);
  });

  test("requires a token under the strict policy, also if none is configured", async () => {
    await using world = await openApp({ tokens: false, authPolicy: "strict" });
    expect((await ask(world.app, "/")).status).toBe(401);
  });

  test("rejects a cookie without the __Host- prefix over TLS", () => {
    const sha256 = createHash("sha256").update(TOKEN).digest("hex");
    const config = { tokens: [{ name: "t", sha256 }], authPolicy: "spec", openRoutes: [] } as const;
    const authentication = createAuthentication(config, Date.now);
    const sessions = createSessions({ ...SESSIONS, authentication, site: TLS });
    const pair = pairOf(sessions.signIn(TOKEN) ?? "");
    const admits = (cookie: string) => sessions.admits(new Request("https://localhost/", { headers: { cookie } }));
    expect([admits(pair), admits(pair.replace("__Host-", ""))]).toEqual([true, false]);
  });

  test("rejects the authorization cookie as a session", async () => {
    await using world = await openApp();
    const encrypted = createAuthorizationCookie(MASTER_KEY, PLAIN, () => world.now).give({ state: "s", verifier: "v" });
    const cookie = pairOf(encrypted).replace("reachlog_oauth", "reachlog_session");
    expect((await ask(world.app, "/", { headers: { cookie } })).status).toBe(401);
  });

  test("opens no session for a wrong token, and limits further attempts after ten", async () => {
    await using world = await openApp();
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const signIn = (token: string) => post(world.app, "/session", `token=${token}`, { headers });
    for (let failure = 1; failure <= 10; failure++) {
      const response = await signIn("wrong");
      expect([response.status, response.headers.get("set-cookie")]).toEqual([401, null]);
    }
    expect(await problemIn(await signIn("wrong"))).toBe("429 too-many-requests");
    expect((await signIn(TOKEN)).status).toBe(303);
  });

  test("is open if no token is configured", async () => {
    await using world = await openApp({ tokens: false });
    expect((await ask(world.app, "/")).status).toBe(200);
  });

  test("forbids framing and caching", async () => {
    await using world = await openApp();
    const { headers } = await ask(world.app, "/");
    expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(headers.get("cache-control")).toBe("no-store");
  });
});

test("a session is not created for an unknown token", () => {
  const config = { tokens: [], authPolicy: "spec", openRoutes: [] } as const;
  const sessions = createSessions({
    ...SESSIONS,
    authentication: createAuthentication(config, Date.now),
    site: TLS,
  });
  expect(sessions.signIn(TOKEN)).toBeUndefined();
});
