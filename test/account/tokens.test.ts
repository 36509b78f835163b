// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { OAuthError } from "../../src/account/oauth.ts";
import { SocialError, type SendDmResult } from "../../src/networks/network.ts";
import { disposedAfterEach } from "../harness/dispose.ts";
import { LIFETIME_MS, openAccount, type AccountHarness } from "../harness/in-process/simulated-oauth-account.ts";

const FIVE_MINUTES_MS = 300_000;
const rate = undefined;

/** Returns a call to the network with a token. The network accepts it, or refuses it as unauthorized. */
const call = (world: AccountHarness) => async (token: string) => {
  if (!world.oauth.accepts(token)) throw new SocialError("unauthorized", "told so");
  return token;
};

const send =
  (world: AccountHarness) =>
  async (token: string): Promise<SendDmResult> =>
    world.oauth.accepts(token) ? { outcome: "sent", messageId: token, rate } : { outcome: "unauthorized", rate };

const faultOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (fault: unknown) => fault,
  );

const disposed = disposedAfterEach();

async function linked(lifeMs: number) {
  const world = disposed(await openAccount());
  const process = await world.start();
  await world.link(process, lifeMs);
  return { world, ...process };
}

test("a token is refreshed before use if it expires in less than 5 minutes", async () => {
  const { world, tokens } = await linked(FIVE_MINUTES_MS);
  expect(await tokens.use(call(world))).toBe("access-1");
  world.now += 1;
  expect(await tokens.use(call(world))).toBe("access-2");
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
  expect(await world.types()).toEqual(["AccountAuthorized", "TokenRefreshed"]);
});

test("ten concurrent callers cause one refresh, and all receive the new token", async () => {
  const { world, tokens } = await linked(60_000);
  const used = await Promise.all(Array.from({ length: 10 }, () => tokens.use(call(world))));
  expect(new Set(used)).toEqual(new Set(["access-2"]));
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
});

test("ten concurrent callers with a 401 cause one refresh", async () => {
  const { world, tokens } = await linked(LIFETIME_MS);
  const revokedEarly = async (token: string) => {
    if (token === "access-1") throw new SocialError("unauthorized", "told so");
    return token;
  };
  const used = await Promise.all(Array.from({ length: 10 }, () => tokens.use(revokedEarly)));
  expect(new Set(used)).toEqual(new Set(["access-2"]));
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
});

test("concurrent callers of two processes cause one refresh", async () => {
  const { world, tokens } = await linked(60_000);
  const other = await world.start();
  const callers = [tokens, other.tokens, tokens, other.tokens];
  const used = await Promise.all(callers.map((one) => one.use(call(world))));
  expect(new Set(used)).toEqual(new Set(["access-2"]));
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
});

test("a call is repeated once with a new token after a 401", async () => {
  const { tokens } = await linked(LIFETIME_MS);
  const asked: string[] = [];
  const fault = await faultOf(
    tokens.use(async (token) => {
      asked.push(token);
      throw new SocialError("unauthorized", "told so");
    }),
  );
  expect(fault).toMatchObject({ kind: "unauthorized" });
  expect(asked).toEqual(["access-1", "access-2"]);

  const sent: string[] = [];
  const result = await tokens.send(async (token) => {
    sent.push(token);
    return { outcome: "unauthorized", rate };
  });
  expect([result.outcome, ...sent]).toEqual(["unauthorized", "access-2", "access-3"]);
});

test("a clock that is set ahead and back causes one refresh", async () => {
  const { world, tokens } = await linked(LIFETIME_MS);
  world.now += LIFETIME_MS;
  expect(await tokens.use(call(world))).toBe("access-2");
  world.now -= LIFETIME_MS;
  for (const _ of [1, 2]) expect(await tokens.use(call(world))).toBe("access-2");
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
});

test("after a clock was set back, a 401 refreshes an expired token once", async () => {
  const { world, tokens } = await linked(LIFETIME_MS);
  world.now -= 12 * LIFETIME_MS;
  const expired = async (token: string) => {
    if (token === "access-1") throw new SocialError("unauthorized", "told so");
    return token;
  };
  for (const _ of [1, 2]) expect(await tokens.use(expired)).toBe("access-2");
  expect(world.oauth.refreshed).toEqual(["refresh-1"]);
});

test("other errors cause no refresh", async () => {
  const { world, tokens } = await linked(LIFETIME_MS);
  const down = new SocialError("unavailable", "told so");
  expect(await faultOf(tokens.use(() => Promise.reject(down)))).toBe(down);
  expect(world.oauth.refreshed).toEqual([]);
});

test("the new pair is in the vault before any caller uses it", async () => {
  const { tokens, vault } = await linked(60_000);
  await tokens.use(async (token) => {
    expect(await vault.get("x-tokens")).toEqual({ version: 3, value: expect.stringContaining(token) });
  });
});

test("the old refresh token is kept if the network grants no new one", async () => {
  const { world, tokens } = await linked(60_000);
  const { refresh } = world.oauth;
  world.oauth.refresh = async (token) => ({ ...(await refresh(token)), refreshToken: undefined });
  await tokens.use(call(world));
  expect((await tokens.peek())?.refreshToken).toBe("refresh-1");
});

describe("a dead grant", () => {
  test("ends the authorization, is announced once, and is not refreshed again", async () => {
    const { world, tokens, projector } = await linked(60_000);
    world.oauth.faults.push(new OAuthError("rejected", "invalid_request"));
    const faults = await Promise.all(Array.from({ length: 5 }, () => faultOf(tokens.use(call(world)))));
    for (const fault of faults) expect(fault).toMatchObject({ name: "SocialError", kind: "unauthorized" });
    expect((await tokens.send(send(world))).outcome).toBe("unauthorized");
    expect(projector.state("account")).toMatchObject({ authorized: false, user: { id: "1" } });
    expect(world.oauth.refreshed).toEqual(["refresh-1"]);
    expect([...world.announced.values()]).toEqual(["the X account is no longer authorized: open /social/auth again"]);
    expect(await world.types()).toEqual(["AccountAuthorized", "TokenRefreshFailed"]);
  });

  test("is announced once by two concurrent processes", async () => {
    const { world, tokens } = await linked(60_000);
    const other = await world.start();
    world.oauth.faults.push(new OAuthError("rejected", "no"), new OAuthError("rejected", "no"));
    await Promise.all([tokens, other.tokens].map((one) => faultOf(one.use(call(world)))));
    expect(world.announced.size).toBe(1);
    expect(await world.types()).toEqual(["AccountAuthorized", "TokenRefreshFailed"]);
  });

  test("is not used again after a 401, although its token has not expired", async () => {
    const { world, tokens } = await linked(LIFETIME_MS);
    world.oauth.faults.push(new OAuthError("rejected", "no"));
    let calls = 0;
    const revoked = () => {
      calls += 1;
      return Promise.reject(new SocialError("unauthorized", "told so"));
    };
    for (const _ of [1, 2]) expect(await faultOf(tokens.use(revoked))).toMatchObject({ kind: "unauthorized" });
    expect(calls).toBe(1);
  });

  test("follows the expiry of an access token without a refresh token", async () => {
    await using world = await openAccount();
    const { tokens, projector } = await world.start();
    const pair = { ...world.oauth.grant(), refreshToken: undefined, expiresAt: world.now + 1 };
    const data = { user: { id: "1", username: "we", name: "We" }, scopes: [], expires_at: "2026-03-01T08:00:00.000Z" };
    await tokens.store(pair, [{ type: "AccountAuthorized", data }], {});
    expect(await tokens.use(call(world))).toBe("access-1");
    world.now += 1;
    expect(await faultOf(tokens.use(call(world)))).toMatchObject({ kind: "unauthorized" });
    expect(projector.state("account").authorized).toBe(false);
    expect(world.oauth.refreshed).toHaveLength(0);
  });
});

describe("an unavailable token endpoint", () => {
  test("has no effect while the old token works", async () => {
    const { world, tokens, projector } = await linked(60_000);
    world.oauth.faults.push(new OAuthError("unavailable", "down"));
    expect(await tokens.use(call(world))).toBe("access-1");
    expect(projector.state("account").authorized).toBe(true);
    expect(world.announced.size).toBe(0);
    expect(await tokens.use(call(world))).toBe("access-2");
  });

  test("is called once for ten callers", async () => {
    const { world, tokens } = await linked(60_000);
    world.oauth.faults.push(new OAuthError("unavailable", "down"));
    const used = await Promise.all(Array.from({ length: 10 }, () => tokens.use(call(world))));
    expect(new Set(used)).toEqual(new Set(["access-1"]));
    expect(world.oauth.refreshed).toHaveLength(1);
  });

  test("keeps the grant while the old token is refused, and nothing is sent", async () => {
    const { world, tokens, projector } = await linked(LIFETIME_MS);
    world.oauth.grant();
    world.oauth.faults.push(new OAuthError("unavailable", "down"), new OAuthError("unavailable", "down"));
    expect(await faultOf(tokens.use(call(world)))).toMatchObject({ kind: "unavailable" });
    expect((await tokens.send(send(world))).outcome).toBe("unreachable");
    expect(projector.state("account").authorized).toBe(true);
  });

  test("keeps the grant after the old token expired, and nothing is sent", async () => {
    const { world, tokens, projector } = await linked(0);
    world.oauth.faults.push(new OAuthError("unavailable", "down"), new OAuthError("unavailable", "down"));
    expect(await faultOf(tokens.use(call(world)))).toMatchObject({ kind: "unavailable" });
    expect((await tokens.send(send(world))).outcome).toBe("unreachable");
    expect(projector.state("account").authorized).toBe(true);
    expect((await tokens.send(send(world))).outcome).toBe("sent");
  });
});

test("an account that is authorized again during a refresh is used with its new tokens", async () => {
  const { world, ...first } = await linked(60_000);
  let isReauthorized = false;
  const { tokens } = await world.start({
    vault: {
      ...first.vault,
      async put(...asked) {
        // Between the moment when this process reads the stored tokens and the moment when it uses the refresh token,
        // another process authorizes the account once more.
        if (!isReauthorized) await first.vault.put("x-tokens", JSON.stringify(world.oauth.grant()), asked[2]);
        isReauthorized = true;
        return first.vault.put(...asked);
      },
    },
  });
  expect(await tokens.send(send(world))).toEqual({ outcome: "sent", messageId: "access-2", rate });
  expect(world.oauth.refreshed).toEqual([]);
});

test("an account without tokens in the vault must be authorized again", async () => {
  const { world, tokens, projector } = await linked(LIFETIME_MS);
  expect(await tokens.drop("access-1")).toBe(true);
  for (const _ of [1, 2]) expect(await faultOf(tokens.use(call(world)))).toMatchObject({ kind: "unauthorized" });
  expect(projector.state("account").authorized).toBe(false);
  expect(world.announced.size).toBe(1);
  expect(await world.types()).toEqual(["AccountAuthorized", "TokenRefreshFailed"]);
});

test("a call without an account is unauthorized", async () => {
  await using world = await openAccount();
  const { tokens } = await world.start();
  expect(await faultOf(tokens.use(call(world)))).toMatchObject({ kind: "unauthorized" });
  expect((await tokens.send(send(world))).outcome).toBe("unauthorized");
});
