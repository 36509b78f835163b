// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { createHash, timingSafeEqual } from "node:crypto";
import { createAuthentication } from "../../../src/http/access/bearer-tokens.ts";
import { describeEndpoints } from "../../../src/http/endpoints.ts";
import { ACTIONS, READ_PATHS } from "../paths-beyond-specification.ts";
import { ask, GOOD, openApp, post, problemIn, TOKEN, type Given } from "../../harness/in-process/app.ts";

const GUARDED = ["/api/tracking/test", "/api/messaging"] as const;

/** Returns the paths that answer 401 without a token. */
async function guarded(given: Given): Promise<string[]> {
  await using world = await openApp(given);
  await world.authorize();
  const paths: string[] = [];
  for (const { path, method } of describeEndpoints()) {
    if (!path.startsWith("/social") && !path.startsWith("/api")) continue;
    const response = await ask(world.app, path, { method });
    if (response.status !== 401 || (await problemIn(response.clone())) === "401 not-authorized") continue;
    expect(response.headers.get("www-authenticate")).toBe('Bearer realm="reachlog"');
    paths.push(path);
  }
  return paths.toSorted();
}

describe("a token is required", () => {
  test("under the policy `spec` by two specified endpoints, actions and reads", async () => {
    expect(await guarded({ authPolicy: "spec" })).toEqual([...GUARDED, ...ACTIONS, ...READ_PATHS].toSorted());
  });

  test("under the policy `strict` everywhere but for health and authorization", async () => {
    expect(await guarded({ authPolicy: "strict" })).toEqual(
      [
        "/social/me",
        "/social/run",
        "/social/stats",
        "/api/notify",
        "/api/tracking/event",
        "/api/tracking/test",
        "/api/messaging",
        ...ACTIONS,
        ...READ_PATHS,
      ].toSorted(),
    );
  });

  test("despite OPEN_ROUTES by the two specified endpoints and all actions", async () => {
    const openRoutes = ["/api/tracking/event", "/social/stats", ...GUARDED, ...ACTIONS];
    expect(await guarded({ authPolicy: "strict", openRoutes })).toEqual(
      ["/social/me", "/social/run", "/api/notify", ...GUARDED, ...ACTIONS, ...READ_PATHS].toSorted(),
    );
  });

  test("by the two specified endpoints, also if no token is configured", async () => {
    await using world = await openApp({ tokens: false });
    for (const path of GUARDED) {
      expect(await problemIn(await post(world.app, path, GOOD[path]))).toBe("401 unauthorized");
      expect(await problemIn(await post(world.app, path, GOOD[path], { token: TOKEN }))).toBe("401 unauthorized");
    }
  });
});

describe("the Authorization header", () => {
  const asWith = async (authorization: string) => {
    await using world = await openApp();
    const response = await post(world.app, "/api/messaging", GOOD["/api/messaging"], { headers: { authorization } });
    return response.status;
  };

  test.each([
    [undefined, ""],
    ["Basic eDp5", ""],
    ["Bearer wrong", ', error="invalid_token"'],
    [`Bearer ${TOKEN} ${TOKEN}`, ', error="invalid_token"'],
  ])("%j is refused with the challenge of RFC 6750", async (authorization, error) => {
    await using world = await openApp();
    const headers = authorization === undefined ? {} : { authorization };
    const response = await post(world.app, "/api/messaging", GOOD["/api/messaging"], { headers });
    expect(response.headers.get("www-authenticate")).toBe(`Bearer realm="reachlog"${error}`);
  });

  test.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER ${TOKEN}`, `Bearer   ${TOKEN}`, `Bearer ${TOKEN} `])(
    "%j is accepted",
    async (authorization) => {
      expect(await asWith(authorization)).toBe(200);
    },
  );

  test.each([
    "",
    "Bearer",
    `Basic ${btoa(`tests:${TOKEN}`)}`,
    `Token ${TOKEN}`,
    TOKEN,
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(1)}`,
    `Bearer ${TOKEN} ${TOKEN}`,
    `Bearer ${TOKEN}, Bearer ${TOKEN}`,
    `Bearer "${TOKEN}"`,
  ])("%j is refused", async (authorization) => {
    expect(await asWith(authorization)).toBe(401);
  });
});

test.each([{}, { authorization: "Basic eDp5" }, { authorization: "none" }])(
  "a token as a nameless query parameter is ignored, with headers %j",
  async (headers) => {
    await using world = await openApp();
    const response = await post(world.app, `/api/messaging?=${TOKEN}`, GOOD["/api/messaging"], { headers });
    expect(response.status).toBe(401);
  },
);

test("a token in the query, body or cookie is ignored", async () => {
  await using world = await openApp();
  const query = `?access_token=${TOKEN}&token=${TOKEN}&Bearer=${TOKEN}`;
  const headers = { cookie: `access_token=${TOKEN}; token=${TOKEN}; reachlog_session=${TOKEN}` };
  const bodies = [GOOD["/api/messaging"], { access_token: TOKEN }, { text: "x", access_token: TOKEN }];
  for (const body of bodies) {
    const response = await post(world.app, `/api/messaging${query}`, body, { headers });
    expect(await problemIn(response)).toBe("401 unauthorized");
  }
});

test.each([
  ["of a wrong shape", { nonsense: true }],
  ["of invalid JSON", "{"],
  ["above the size limit", "x".repeat(70_000)],
  ["of another type", new Uint8Array([255])],
])("an unauthenticated body %s is answered with 401", async (_what, body) => {
  await using world = await openApp({ authPolicy: "strict" });
  for (const path of [...GUARDED, "/api/notify", "/social/run"]) {
    const response = await post(world.app, path, body, { headers: { "content-type": "text/plain" } });
    expect(await problemIn(response)).toBe("401 unauthorized");
  }
});

test("a wrong token is refused even if none is required", async () => {
  await using world = await openApp();
  for (const path of ["/social/health", "/api/health", "/social/stats"]) {
    expect(await problemIn(await ask(world.app, path, { token: "wrong" }))).toBe("401 unauthorized");
    expect((await ask(world.app, path)).status).toBe(200);
  }
});

test("the caller's name is recorded with the event, and the token is not", async () => {
  await using world = await openApp();
  await post(world.app, "/api/messaging", GOOD["/api/messaging"], { token: TOKEN });
  const [event] = await world.events("MessageRequested");
  expect(event?.meta.caller).toBe("tests");
  expect(JSON.stringify(event)).not.toContain(TOKEN);
});

test("after ten failures in a minute, further ones from the address are answered with 429", async () => {
  await using world = await openApp();
  for (let failure = 1; failure <= 10; failure++) {
    expect(await problemIn(await ask(world.app, "/social/health", { token: "wrong" }))).toBe("401 unauthorized");
  }
  world.now += 30_000;
  const response = await ask(world.app, "/social/health", { token: "wrong" });
  expect([response.headers.get("retry-after"), await problemIn(response)]).toEqual(["30", "429 too-many-requests"]);
  // The limit on wrong tokens does not affect requests without a token.
  expect((await ask(world.app, "/social/health")).status).toBe(200);
  world.now += 30_000;
  expect(await problemIn(await ask(world.app, "/social/health", { token: "wrong" }))).toBe("401 unauthorized");
});

test("a valid token is accepted despite failures from the same address", async () => {
  await using world = await openApp();
  for (let failure = 1; failure <= 12; failure++) await ask(world.app, "/social/health", { token: "wrong" });
  expect((await ask(world.app, "/social/health", { token: TOKEN })).status).toBe(200);
  expect((await post(world.app, "/api/messaging", GOOD["/api/messaging"], { token: TOKEN })).status).toBe(200);
  // The requests with the right token did not reset the count of failures.
  expect(await problemIn(await ask(world.app, "/social/health", { token: "wrong" }))).toBe("429 too-many-requests");
});

test("valid tokens do not count as failures", async () => {
  await using world = await openApp();
  for (let request = 1; request <= 30; request++) {
    expect((await ask(world.app, "/social/health", { token: TOKEN })).status).toBe(200);
  }
});

describe("token comparison", () => {
  const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");
  const KNOWN = ["first-token-0123456789", "second-token-0123456789", "third-token-0123456789"];
  const tokens = KNOWN.map((token, index) => ({ name: `caller-${index}`, sha256: hashOf(token) }));

  test.each([
    ...KNOWN,
    "",
    "x",
    "first-token-012345678",
    "first-token-01234567890",
    hashOf("first-token-0123456789"),
    "x".repeat(5_000),
  ])("compares %j with every known token in constant time", (token) => {
    const compared: (readonly [number, number])[] = [];
    const authentication = createAuthentication(
      { tokens, authPolicy: "spec", openRoutes: [] },
      Date.now,
      (one, other) => {
        compared.push([one.length, other.length]);
        return timingSafeEqual(one, other);
      },
    );
    const index = KNOWN.indexOf(token);
    expect(authentication.identify(token)?.name).toBe(
      index === -1 ? (undefined as unknown as string) : `caller-${index}`,
    );
    expect(compared).toEqual([
      [32, 32],
      [32, 32],
      [32, 32],
    ]);
  });
});

test("two tokens can share a name, and a removed token is unknown", () => {
  const of = (token: string) => ({ name: "web", sha256: createHash("sha256").update(token).digest("hex") });
  const authentication = createAuthentication({ tokens: [of("old")], authPolicy: "spec", openRoutes: [] }, Date.now);
  const callers = () => ["old", "new"].map((token) => authentication.identify(token)?.name);
  expect(callers()).toEqual(["web", undefined]);
  authentication.replace([of("old"), of("new")]);
  expect(callers()).toEqual(["web", "web"]);
  authentication.replace([of("new")]);
  expect(callers()).toEqual([undefined, "web"]);
  expect([authentication.find(of("old")), authentication.find(of("new"))]).toEqual([undefined, of("new")]);
});
