// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { createAuthentication } from "../../../src/http/access/bearer-tokens.ts";
import { createSessions, LOOK_AGAIN_MS } from "../../../src/http/access/session.ts";
import { openVault } from "../../../src/vault/vault.ts";
import { MASTER_KEY, TOKEN } from "../../harness/in-process/app.ts";
import { ENGINES } from "../../vault/engines.ts";

const TOKENS = [{ name: "t", sha256: createHash("sha256").update(TOKEN).digest("hex") }];
const authentication = createAuthentication({ tokens: TOKENS, authPolicy: "spec", openRoutes: [] }, Date.now);
const SIGNED_IN_MS = 12 * 3_600_000;

/** Builds a browser's request with the cookie that the browser got at its sign-in. */
const requestWith = (setCookie = ""): Request =>
  new Request("http://localhost/", { headers: { cookie: setCookie.split(";")[0] ?? "" } });

describe.each(ENGINES)("the sessions of two instances with a vault in %s", (_engine, openPlace) => {
  async function openInstances() {
    const world = await openPlace();
    const clock = { now: 1_000_000 };
    const vaults = [await openVault(world.place, MASTER_KEY), await openVault(world.place, MASTER_KEY)] as const;
    const down = { is: false };
    const [one, other] = vaults.map((vault) => {
      const refuse = async (): Promise<never> => Promise.reject(new Error("out of reach"));
      const claims = {
        claim: (...given: Parameters<typeof vault.claim>) => (down.is ? refuse() : vault.claim(...given)),
        isClaimed: (...given: Parameters<typeof vault.isClaimed>) => (down.is ? refuse() : vault.isClaimed(...given)),
      };
      const site = new URL("http://localhost");
      return createSessions({
        masterKey: MASTER_KEY,
        authentication,
        site,
        isLocal: true,
        claims,
        clock: () => clock.now,
      });
    }) as [ReturnType<typeof createSessions>, ReturnType<typeof createSessions>];
    return {
      clock,
      one,
      other,
      down,
      async [Symbol.asyncDispose]() {
        for (const vault of vaults) await vault[Symbol.asyncDispose]();
        await world[Symbol.asyncDispose]();
      },
    };
  }

  test("reject a copied cookie after sign-out, at the other instance after the next look-up", async () => {
    await using world = await openInstances();
    const { clock, one, other } = world;
    const copy = requestWith(one.signIn(TOKEN));
    const another = requestWith(one.signIn(TOKEN));
    for (const sessions of [one, other]) await sessions.look(copy);
    expect([one.admits(copy), other.admits(copy)]).toEqual([true, true]);
    expect(await one.signOut(copy)).toContain("Max-Age=0");
    expect([one.admits(copy), one.formToken(copy), one.tokenOf(copy)]).toEqual([false, undefined, undefined]);
    clock.now += LOOK_AGAIN_MS;
    await other.look(copy);
    expect(other.admits(copy)).toBe(false);
    await other.look(another);
    expect(other.admits(another)).toBe(true);
  });

  test("reject a signed-out cookie until its session would have expired", async () => {
    await using world = await openInstances();
    const { clock, one, other } = world;
    const copy = requestWith(one.signIn(TOKEN));
    clock.now += 3_600_000;
    await one.signOut(copy);
    clock.now += SIGNED_IN_MS - 3_600_001;
    await other.look(copy);
    expect(other.admits(copy)).toBe(false);
  });

  test("look up a cookie once per interval, and no request without one", async () => {
    await using world = await openInstances();
    const { clock, one } = world;
    const copy = requestWith(one.signIn(TOKEN));
    expect(one.look(new Request("http://localhost/"))).toBeUndefined();
    await one.look(copy);
    clock.now += LOOK_AGAIN_MS - 1;
    expect(one.look(copy)).toBeUndefined();
  });

  test("continue while the claims are unreachable; a failing sign-out still ends them locally", async () => {
    await using world = await openInstances();
    const { one, down } = world;
    const copy = requestWith(one.signIn(TOKEN));
    down.is = true;
    await one.look(copy);
    expect(one.admits(copy)).toBe(true);
    expect(one.signOut(copy)).rejects.toThrow("out of reach");
    expect(one.admits(copy)).toBe(false);
  });
});

/** Claims of a vault in which no session was ever ended. */
const NONE_ENDED = { claim: async () => true, isClaimed: async () => false };

test("a session ends when its token expires", () => {
  const clock = { now: 1_000_000 };
  const tokens = TOKENS.map((token) => ({ ...token, expiresAt: clock.now + 60_000 }));
  const sessions = createSessions({
    masterKey: MASTER_KEY,
    authentication: createAuthentication({ tokens, authPolicy: "spec", openRoutes: [] }, () => clock.now),
    site: new URL("http://localhost"),
    isLocal: true,
    claims: NONE_ENDED,
    clock: () => clock.now,
  });
  const request = requestWith(sessions.signIn(TOKEN));
  clock.now += 59_999;
  expect([sessions.admits(request), sessions.tokenOf(request)?.name]).toEqual([true, "t"]);
  clock.now += 1;
  expect([sessions.admits(request), sessions.tokenOf(request)]).toEqual([false, undefined]);
});

test.each([
  ["a console that listens locally gets forms", true, {}, true],
  ["a console that other machines reach gets no forms", false, {}, false],
  ["a request forwarded by a proxy gets no forms", true, { "x-forwarded-for": "203.0.113.7" }, false],
  ["a request that passed a proxy gets no forms", true, { via: "1.1 proxy" }, false],
])("without tokens, %s", (_case, isLocal, headers, gets) => {
  const sessions = createSessions({
    masterKey: MASTER_KEY,
    authentication: createAuthentication({ tokens: [], authPolicy: "spec", openRoutes: [] }, Date.now),
    site: new URL("http://localhost"),
    isLocal,
    claims: NONE_ENDED,
    clock: Date.now,
  });
  expect(sessions.formToken(new Request("http://localhost/", { headers })) !== undefined).toBe(gets);
});
