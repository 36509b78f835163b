import { describe, expect, test } from "bun:test";
import { OAuthError, type TokenPair } from "../../src/account/oauth.ts";
import type { Tokens } from "../../src/account/tokens.ts";
import { createAuthCookie } from "../../src/http/auth-cookie.ts";
import { SocialError } from "../../src/networks/network.ts";
import { createSimulatedNetwork, OWN } from "../outreach/social-network.ts";
import { ask, MASTER_KEY, openWorld, told } from "./app-world.ts";

const PAIR: TokenPair = { accessToken: "a", refreshToken: "r", expiresAt: 0, scopes: ["dm.write"] };
const JSON_WANTED = { accept: "application/json" };

/** A world with X configured; `faults` are thrown by the next exchanges, `who` is whose tokens they are. */
async function openX() {
  const faults: Error[] = [];
  const x = { faults, who: OWN, exchanged: 0 };
  const world = await openWorld({
    authorization({ journal, projector, clock }) {
      let kept: TokenPair | undefined;
      const tokens: Tokens = {
        use: (call) => call("a"),
        send: (call) => call("a"),
        async store(pair, facts, cause) {
          kept = pair;
          await projector.until((await journal.append("account", facts, cause)).last);
        },
        exclusively: (work) => work(),
        peek: () => kept,
        drop: () => {},
      };
      const oauth = {
        begin: async () => ({ state: "the-state", verifier: "the-verifier", url: "https://x.example/authorize?x=1" }),
        async exchange() {
          const fault = faults.shift();
          if (fault !== undefined) throw fault;
          x.exchanged += 1;
          return PAIR;
        },
        refresh: () => Promise.reject(new Error("not simulated")),
        revoke: async () => {},
      };
      const network = { ...createSimulatedNetwork(clock), me: async () => x.who };
      const cookie = createAuthCookie(MASTER_KEY, false, clock);
      const used = new Set<string>();
      const claimState = (state: string) => !used.has(state) && used.add(state).has(state);
      return { oauth, tokens, network, journal, projector, pinnedHandle: undefined, cookie, claimState };
    },
  });
  const begin = async (): Promise<string> => {
    const response = await ask(world.app, "/social/auth");
    return response.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  };
  const callback = (query: string, headers: Record<string, string>) =>
    ask(world.app, `/social/callback?${query}`, { headers });
  return { world, x, begin, callback };
}

test("a browser is sent to the network with a cookie that lets it come back, once", async () => {
  const { world, begin, callback } = await openX();
  await using _world = world;
  const started = await ask(world.app, "/social/auth");
  expect([started.status, started.headers.get("location")]).toEqual([302, "https://x.example/authorize?x=1"]);
  expect([started.headers.get("cache-control"), started.headers.get("referrer-policy")]).toEqual([
    "no-store",
    "no-referrer",
  ]);
  const cookie = await begin();
  const back = await callback("state=the-state&code=c", { cookie });
  expect([back.status, back.headers.get("location")]).toEqual([303, "/"]);
  expect(back.headers.get("set-cookie")).toStartWith("reachlog_oauth=; Path=/social; Max-Age=0;");
  expect(world.projector.state("account")).toMatchObject({ authorized: true, user: OWN });

  const again = await callback("state=the-state&code=c", { cookie });
  expect(await told(again)).toBe("400 authorization-failed");
});

test("a program is told who was authorized", async () => {
  const { world, begin, callback } = await openX();
  await using _world = world;
  const response = await callback("state=the-state&code=c", { cookie: await begin(), ...JSON_WANTED });
  expect([response.status, await response.json()]).toEqual([200, { ...OWN, scopes: ["dm.write"] }]);
});

test("of two who come back with one state at once only one gets through", async () => {
  const { world, x, begin, callback } = await openX();
  await using _world = world;
  const cookie = await begin();
  const answers = await Promise.all([1, 2, 3].map(() => callback("state=the-state&code=c", { cookie })));
  expect(answers.map(({ status }) => String(status)).sort()).toEqual(["303", "400", "400"]);
  expect(x.exchanged).toBe(1);
});

describe("nothing is stored, and the answer is 400, when", () => {
  test.each([
    ["the state is another one", "state=other&code=c", true],
    ["there is no state", "code=c", true],
    ["there is nothing at all", "", true],
    ["the browser has no cookie", "state=the-state&code=c", false],
  ] as const)("%s", async (_what, query, hasCookie) => {
    const { world, begin, callback } = await openX();
    await using _world = world;
    const cookie = await begin();
    const response = await callback(query, hasCookie ? { cookie } : {});
    expect(await told(response)).toBe("400 authorization-failed");
    expect(await world.events("AccountAuthorized")).toEqual([]);
  });

  test("the state is more than ten minutes old", async () => {
    const { world, begin, callback } = await openX();
    await using _world = world;
    const cookie = await begin();
    world.now += 600_000;
    expect(await told(await callback("state=the-state&code=c", { cookie }))).toBe("400 authorization-failed");
  });

  test("the network refuses the code", async () => {
    const { world, x, begin, callback } = await openX();
    await using _world = world;
    x.faults.push(new OAuthError("refused", "invalid_request"));
    const response = await callback("state=the-state&code=c", { cookie: await begin() });
    expect(await response.clone().json()).toMatchObject({
      detail: "The network answered: invalid_request. Nothing was stored.",
    });
    expect(await told(response)).toBe("400 authorization-failed");
    expect(await world.events("AccountAuthorized")).toEqual([]);
  });
});

test("a network that is down is told as such", async () => {
  const { world, x, begin, callback } = await openX();
  await using _world = world;
  x.faults.push(new OAuthError("unreachable", "down"));
  expect(await told(await callback("state=the-state&code=c", { cookie: await begin() }))).toBe("502 network-failed");
});

test("another account than the linked one gets 403, and the linked one stays", async () => {
  const { world, x, begin, callback } = await openX();
  await using _world = world;
  await world.authorize();
  x.who = { id: "2", username: "stranger", name: "Stranger" };
  expect(await told(await callback("state=the-state&code=c", { cookie: await begin() }))).toBe("403 wrong-account");
  expect(world.projector.state("account").user?.id).toBe("1");
});

describe("/social/me", () => {
  test("asks the network who we are, now", async () => {
    const { world, x } = await openX();
    await using _world = world;
    await world.authorize();
    x.who = { ...OWN, username: "renamed" };
    const response = await ask(world.app, "/social/me");
    expect([response.status, await response.json()]).toEqual([200, x.who]);
  });

  test("is 401 without an account, and tells where to authorize one", async () => {
    const { world } = await openX();
    await using _world = world;
    const response = await ask(world.app, "/social/me");
    expect(response.headers.get("www-authenticate")).toStartWith("OAuth ");
    expect(await told(response)).toBe("401 not-authorized");
  });

  test("is 502 when the network is down", async () => {
    const { world } = await openX();
    await using _world = world;
    await world.authorize();
    const { authorization } = world.deps;
    Object.assign(authorization?.network ?? {}, { me: () => Promise.reject(new SocialError("unavailable", "down")) });
    expect(await told(await ask(world.app, "/social/me"))).toBe("502 network-failed");
  });
});
