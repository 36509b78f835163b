// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { OAuthError, type TokenPair } from "../../../src/account/oauth.ts";
import type { Tokens } from "../../../src/account/tokens.ts";
import { listen } from "../../../src/http/server/listen.ts";
import { createLoadShedding } from "../../../src/http/access/limit-requests-and-streams.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { SocialError } from "../../../src/networks/network.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { oddIn } from "../../harness/unexpected-html.ts";
import { createSimulatedNetwork, OWN } from "../../harness/in-process/social-network.ts";
import { ask, openApp, post, problemIn, TOKEN } from "../../harness/in-process/app.ts";
import { requestBytes } from "../wire/raw-request-bytes.ts";
import { openConnection } from "../wire/connection.ts";

const PAIR: TokenPair = { accessToken: "a", refreshToken: "r", expiresAt: 0, scopes: ["dm.write"] };
const JSON_WANTED = { accept: "application/json" };

const disposed = disposedAfterEach();

/**
 * Opens an app with an account at a simulated X. When X gets a code, it throws the next error of `faults`; if there is
 * none, it returns tokens of the account `who`.
 */
async function openX() {
  const faults: Error[] = [];
  // `asked` resolves when X receives a code. X answers when `answered` has resolved.
  const x = { faults, who: OWN, exchanged: 0, asked: Promise.withResolvers<void>(), answered: Promise.resolve() };
  const world = disposed(
    await openApp({
      hosts: ["localhost", "127.0.0.1"],
      account({ eventLog, projector, clock }) {
        let kept: TokenPair | undefined;
        const tokens: Tokens = {
          use: (call) => call("a"),
          send: (call) => call("a"),
          async store(pair, newEvents, metadata) {
            kept = pair;
            await projector.until((await eventLog.append("account", newEvents, metadata)).last);
          },
          exclusively: (work) => work(),
          peek: async () => kept,
          drop: async () => true,
          async [Symbol.asyncDispose]() {},
        };
        const oauth = {
          begin: async () => ({ state: "the-state", verifier: "the-verifier", url: "https://x.example/authorize?x=1" }),
          async exchange() {
            x.asked.resolve();
            await x.answered;
            const fault = faults.shift();
            if (fault !== undefined) throw fault;
            x.exchanged += 1;
            return PAIR;
          },
          refresh: () => Promise.reject(new Error("not simulated")),
          revoke: async () => {},
        };
        const network = { ...createSimulatedNetwork(clock), me: async () => x.who };
        return { oauth, tokens, network, pinnedHandle: undefined };
      },
    }),
  );
  const begin = async (): Promise<string> => {
    const response = await ask(world.app, "/social/auth");
    return response.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  };
  const callback = (query: string, headers: Record<string, string>) =>
    ask(world.app, `/social/callback?${query}`, { headers });
  return { world, x, begin, callback };
}

test("a browser on another host name is redirected to PUBLIC_URL once", async () => {
  const { world } = await openX();
  const under = (host: string, path = "/social/auth") => ask(world.app, path, { headers: { host } });
  const led = await under("127.0.0.1:3000");
  expect([led.status, led.headers.get("location")]).toEqual([303, "http://localhost/social/auth?led=1"]);
  expect(led.headers.get("set-cookie")).toBeNull();
  // These two get no redirect to the public address. A proxy that renames the host would turn it into an endless chain
  // of redirects.
  for (const answer of [await under("LOCALHOST"), await under("127.0.0.1:3000", "/social/auth?led=1")]) {
    expect(answer.headers.get("location")).toStartWith("https://x.example/authorize");
  }
});

test.each([
  ["/?limit=5&confirm=start-run", "/?limit=5&confirm=start-run"],
  ["//evil.example/", "/"],
  [String.raw`/\evil.example`, "/"],
  ["https://evil.example/", "/"],
])("an authorization that began at %p leads to %p of this service", async (back, location) => {
  const { world, callback } = await openX();
  const path = `/social/auth?${new URLSearchParams({ back, other: "x" })}`;
  const led = await ask(world.app, path, { headers: { host: "127.0.0.1:3000" } });
  const { searchParams } = new URL(led.headers.get("location")!);
  expect(Object.fromEntries(searchParams)).toEqual({ led: "1", ...(back === location && { back }) });
  const begun = await ask(world.app, path);
  const cookie = begun.headers.get("set-cookie")!.split(";", 1)[0]!;
  const returned = await callback("state=the-state&code=c", { cookie });
  expect([returned.status, returned.headers.get("location")]).toEqual([303, location]);
});

test("a browser is sent to the network and links the account when it comes back", async () => {
  const { world, begin, callback } = await openX();
  const started = await ask(world.app, "/social/auth");
  expect([started.status, started.headers.get("location")]).toEqual([302, "https://x.example/authorize?x=1"]);
  expect([started.headers.get("cache-control"), started.headers.get("referrer-policy")]).toEqual([
    "no-store",
    "no-referrer",
  ]);
  const cookie = await begin();
  const back = await callback("state=the-state&code=c", { cookie });
  expect([back.status, back.headers.get("location")]).toEqual([303, "/"]);
  expect(back.headers.get("set-cookie")).toStartWith("reachlog_oauth=; Max-Age=0; Path=/social;");
  expect(world.projector.state("account")).toMatchObject({ authorized: true, user: OWN });
});

test("the event names the operator who is signed in, and none for a browser without a session", async () => {
  const { world, begin, callback } = await openX();
  const cookie = await begin();
  const signedIn = await post(world.app, "/session", `token=${TOKEN}`, {
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  const [session = ""] = signedIn.headers.get("set-cookie")?.split(";", 1) ?? [];
  await callback("state=the-state&code=c", { cookie: `${cookie}; ${session}` });
  const other = await openX();
  await other.callback("state=the-state&code=c", { cookie: await other.begin() });
  const callers = await Promise.all([world, other.world].map((one) => one.events("AccountAuthorized")));
  expect(callers.flat().map(({ meta }) => meta.caller)).toEqual(["tests", "anonymous"]);
});

test("a repeated callback of the same browser shows its success without another exchange", async () => {
  const { world, x, begin, callback } = await openX();
  const cookie = await begin();
  await callback("state=the-state&code=c", { cookie });
  // The browser repeats the callback request, as browsers do if the connection breaks before the answer arrives. The
  // service must authorize the account only once.
  for (const _ of [1, 2]) {
    const again = await callback("state=the-state&code=c", { cookie });
    expect([again.status, again.headers.get("location")]).toEqual([303, "/"]);
    expect(again.headers.get("set-cookie")).toStartWith("reachlog_oauth=; Max-Age=0; Path=/social;");
  }
  const program = await callback("state=the-state&code=c", { cookie, ...JSON_WANTED });
  expect([program.status, await program.json()]).toEqual([200, { ...OWN, scopes: ["dm.write"] }]);
  expect([x.exchanged, (await world.events("AccountAuthorized")).length]).toEqual([1, 1]);
});

describe("a used state is refused", () => {
  const REFUSED = { detail: "This state was used before. Nothing was stored." };
  const finished = async () => {
    const opened = await openX();
    const cookie = await opened.begin();
    await opened.callback("state=the-state&code=c", { cookie });
    return { ...opened, cookie };
  };

  test("with another code than the exchanged one", async () => {
    const { x, callback, cookie } = await finished();
    for (const query of ["state=the-state&code=other", "state=the-state"])
      expect(await (await callback(query, { cookie })).json()).toMatchObject(REFUSED);
    expect(x.exchanged).toBe(1);
  });

  test.each([
    ["the account is unlinked", { type: "AccountUnlinked", data: { user_id: OWN.id, revoked: true } }],
    ["the grant is dead", { type: "TokenRefreshFailed", data: { user_id: OWN.id, reason: "r", dead: true } }],
    [
      "another account is linked",
      {
        type: "AccountAuthorized",
        data: { user: { id: "2", username: "u", name: "n" }, scopes: [], expires_at: "2027-01-01T00:00:00.000Z" },
      },
    ],
  ] as const)("once %s", async (_what, newEvent) => {
    const { world, callback, cookie } = await finished();
    await world.append("account", newEvent as NewEvent);
    const again = await callback("state=the-state&code=c", { cookie });
    expect(await again.json()).toMatchObject(REFUSED);
  });

  test("from a browser that did not begin the authorization", async () => {
    const { callback } = await finished();
    expect(await problemIn(await callback("state=the-state&code=c", {}))).toBe("400 authorization-failed");
  });

  test("if its authorization failed", async () => {
    const { x, begin, callback } = await openX();
    x.faults.push(new OAuthError("unavailable", "down"));
    const cookie = await begin();
    await callback("state=the-state&code=c", { cookie });
    expect(await (await callback("state=the-state&code=c", { cookie })).json()).toMatchObject(REFUSED);
  });
});

describe("a slow token exchange at the network", () => {
  /**
   * Starts the service on a real socket, which closes a connection that is idle for a second. X exchanges the code only
   * after a call of `answer`.
   */
  async function slow() {
    const opened = await openX();
    const { world, x } = opened;
    const answer = Promise.withResolvers<void>();
    x.answered = answer.promise;
    const server = await listen(world.app, { host: "127.0.0.1", port: 0 }, createLoadShedding(), 1);
    const url = `http://127.0.0.1:${world.app.server?.port}`;
    const cookie = await opened.begin();
    const follow = (init: RequestInit = {}) =>
      fetch(`${url}/social/callback?state=the-state&code=c`, {
        headers: { cookie, host: "localhost" },
        redirect: "manual",
        ...init,
      });
    /**
     * Opens another connection and waits until the server closes it as idle. By then the server would also have closed
     * any connection that was idle for longer.
     */
    const idle = async (): Promise<void> => {
      using silent = await openConnection(url);
      await silent.write(requestBytes(url, { path: "/api/health" }));
      await silent.answered(1);
      await silent.closed();
    };
    return {
      ...opened,
      url,
      answer: () => answer.resolve(),
      follow,
      idle,
      async [Symbol.asyncDispose]() {
        await server[Symbol.asyncDispose]();
        await world[Symbol.asyncDispose]();
      },
    };
  }

  test("does not close the waiting browser's connection", async () => {
    await using opened = await slow();
    const answered = opened.follow();
    await opened.x.asked.promise;
    await opened.idle();
    opened.answer();
    expect((await answered).status).toBe(303);
  });

  test("does not close the connection of a caller of /social/me", async () => {
    await using opened = await slow();
    await opened.world.authorize();
    const asked = Promise.withResolvers<void>();
    const { promise, resolve } = Promise.withResolvers<void>();
    const me = async () => {
      asked.resolve();
      await promise;
      return OWN;
    };
    Object.assign(opened.world.deps.account?.network ?? {}, { me });
    const answered = fetch(`${opened.url}/social/me`, { headers: { host: "localhost" } });
    await asked.promise;
    await opened.idle();
    resolve();
    expect((await answered).status).toBe(200);
  });

  test("links the account for a browser that aborts and asks again", async () => {
    await using opened = await slow();
    const leaving = new AbortController();
    const first = opened.follow({ signal: leaving.signal }).catch(() => undefined);
    await opened.x.asked.promise;
    leaving.abort();
    await first;
    const again = [opened.follow(), opened.follow()];
    opened.answer();
    expect((await Promise.all(again)).map(({ status }) => status)).toEqual([303, 303]);
    expect(opened.x.exchanged).toBe(1);
  });
});

test("a program receives the authorized account and its scopes", async () => {
  const { begin, callback } = await openX();
  const response = await callback("state=the-state&code=c", { cookie: await begin(), ...JSON_WANTED });
  expect([response.status, await response.json()]).toEqual([200, { ...OWN, scopes: ["dm.write"] }]);
});

test("only one of several concurrent codes for one state is exchanged", async () => {
  const { x, begin, callback } = await openX();
  const cookie = await begin();
  const answers = await Promise.all([1, 2, 3].map((code) => callback(`state=the-state&code=${code}`, { cookie })));
  expect(answers.map(({ status }) => String(status)).sort()).toEqual(["303", "400", "400"]);
  expect(x.exchanged).toBe(1);
});

describe("the callback answers 400 and stores nothing if", () => {
  test.each([
    ["the state is unknown", "state=other&code=c", true],
    ["the state is missing", "code=c", true],
    ["the query is empty", "", true],
    ["the cookie is missing", "state=the-state&code=c", false],
  ] as const)("%s", async (_what, query, hasCookie) => {
    const { world, begin, callback } = await openX();
    const cookie = await begin();
    const response = await callback(query, hasCookie ? { cookie } : {});
    expect(await problemIn(response)).toBe("400 authorization-failed");
    expect(await world.events("AccountAuthorized")).toEqual([]);
  });

  test("the state is ten minutes old", async () => {
    const { world, begin, callback } = await openX();
    const cookie = await begin();
    world.now += 600_000;
    expect(await problemIn(await callback("state=the-state&code=c", { cookie }))).toBe("400 authorization-failed");
  });

  test("the network refuses the code", async () => {
    const { world, x, begin, callback } = await openX();
    x.faults.push(new OAuthError("rejected", "invalid_request"));
    const response = await callback("state=the-state&code=c", { cookie: await begin() });
    expect(await response.clone().json()).toMatchObject({
      detail: "The network answered: invalid_request. Nothing was stored.",
    });
    expect(await problemIn(response)).toBe("400 authorization-failed");
    expect(await world.events("AccountAuthorized")).toEqual([]);
  });
});

describe("a browser gets a page with the problem's status, the reason and links, after", () => {
  const ACCEPT = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };
  /**
   * Checks that the answer is a page for browsers, not a problem in JSON. Returns its status, main part and link
   * targets.
   */
  const shown = async (response: Response): Promise<[number, string, readonly string[]]> => {
    const page = await response.text();
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("content-security-policy")).toStartWith("default-src 'none'");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(await oddIn(page)).toEqual([]);
    const main = page.slice(page.indexOf("<main"));
    return [response.status, main, [...main.matchAll(/href="([^"]+)"/g)].map(([, href = ""]) => href)];
  };
  const HOSTILE = encodeURIComponent("<b>canary</b>");

  test.each([
    ["a cancellation at X", new OAuthError("rejected", "access_denied"), "the-state", 400, "You cancelled at X."],
    ["a refusal by X", new OAuthError("rejected", "canary"), "the-state", 400, "X refused the authorization."],
    ["a return with an unknown state", undefined, HOSTILE, 400, "does not belong to the authorization"],
    ["an outage of X", new OAuthError("unavailable", "X is down"), "the-state", 502, "X is down"],
  ] as const)("%s", async (_what, fault, state, status, words) => {
    const { x, begin, callback } = await openX();
    if (fault !== undefined) x.faults.push(fault);
    const answer = await callback(`state=${state}&error=${HOSTILE}&code=canary`, { cookie: await begin(), ...ACCEPT });
    const [seen, main, ways] = await shown(answer);
    expect(seen).toBe(status);
    expect(main).toContain(words);
    expect(main).not.toContain("canary");
    expect(ways).toEqual(["/social/auth", "/"]);
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    // Only a final outcome sets the cookie that ends this browser's authorization. The same holds for answers to
    // programs.
    expect(answer.headers.has("set-cookie")).toBe(fault !== undefined);
  });

  test("a return without an authorization in progress, or with a used state", async () => {
    const { begin, callback } = await openX();
    const [status, main, ways] = await shown(await callback("state=the-state&code=c", ACCEPT));
    expect([status, ways]).toEqual([400, ["/social/auth", "/"]]);
    expect(main).toContain("no authorization in progress");
    const cookie = await begin();
    await callback("state=the-state&code=c", { cookie });
    const twice = await shown(await callback("state=the-state&code=other", { cookie, ...ACCEPT }));
    expect([twice[0], twice[2]]).toEqual([400, ["/social/auth", "/"]]);
    expect(twice[1]).toContain("was used before");
  });

  test("an authorization of another account than the linked one", async () => {
    const { world, x, begin, callback } = await openX();
    await world.authorize();
    x.who = { id: "2", username: "stranger", name: "Stranger" };
    const answer = await callback("state=the-state&code=c", { cookie: await begin(), ...ACCEPT });
    const [status, main, ways] = await shown(answer);
    expect([status, ways]).toEqual([403, ["/social/auth", "/"]]);
    expect(main).toContain("reachlog account unlink");
    expect(main).not.toContain("tranger");
  });

  test("a request while X is not configured", async () => {
    await using world = await openApp({ hasX: false });
    for (const path of ["/social/auth", "/social/callback?state=a&code=b"]) {
      const [status, main, ways] = await shown(await ask(world.app, path, { headers: ACCEPT }));
      expect([status, ways]).toEqual([503, ["/"]]);
      expect(main).toContain("Set X_CLIENT_ID");
    }
  });
});

test("a network outage is answered with 502", async () => {
  const { x, begin, callback } = await openX();
  x.faults.push(new OAuthError("unavailable", "down"));
  expect(await problemIn(await callback("state=the-state&code=c", { cookie: await begin() }))).toBe(
    "502 network-failed",
  );
});

test("another account than the linked one gets 403, and the linked one stays linked", async () => {
  const { world, x, begin, callback } = await openX();
  await world.authorize();
  x.who = { id: "2", username: "stranger", name: "Stranger" };
  expect(await problemIn(await callback("state=the-state&code=c", { cookie: await begin() }))).toBe(
    "403 wrong-account",
  );
  expect(world.projector.state("account").user?.id).toBe("1");
});

describe("/social/me", () => {
  test("asks the network for the account each time", async () => {
    const { world, x } = await openX();
    await world.authorize();
    x.who = { ...OWN, username: "renamed" };
    const response = await ask(world.app, "/social/me");
    expect([response.status, await response.json()]).toEqual([200, x.who]);
  });

  test("answers 401 without an account, and names the OAuth scheme", async () => {
    const { world } = await openX();
    const response = await ask(world.app, "/social/me");
    expect(response.headers.get("www-authenticate")).toStartWith("OAuth ");
    expect(await problemIn(response)).toBe("401 not-authorized");
  });

  test("answers 502 if the network is down", async () => {
    const { world } = await openX();
    await world.authorize();
    const { account } = world.deps;
    Object.assign(account?.network ?? {}, { me: () => Promise.reject(new SocialError("unavailable", "down")) });
    expect(await problemIn(await ask(world.app, "/social/me"))).toBe("502 network-failed");
  });
});
