// These tests run parts of the service inside the test process.
import { afterAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { SCOPE_NAMES, type ApiToken, type TokenScope } from "../../../src/config/parse-api-tokens.ts";
import { describeEndpoints } from "../../../src/http/endpoints.ts";
import { listen, withPort } from "../../../src/http/server/listen.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { ask, GOOD, openApp, post, problemIn, TOKEN } from "../../harness/in-process/app.ts";

const toToken = (secret: string, more: Partial<ApiToken> = {}): ApiToken => ({
  name: "matrix",
  sha256: createHash("sha256").update(secret).digest("hex"),
  ...more,
});

/** Lists of endpoints in docs/http-api.md: endpoint -> the credential and the scope that it requires. */
const DOCUMENTED = new Map(
  [
    ...readFileSync(new URL("../../../docs/http-api.md", import.meta.url), "utf8").matchAll(
      /^- (all|token|token\/session|session|token under `strict`)(?:, `(\w+)`)?: (.+)$/gm,
    ),
  ].flatMap(([, caller = "", scope, endpoints = ""]) =>
    [...endpoints.matchAll(/`((?:GET|POST) \S+)`/g)].map(
      ([, endpoint = ""]) => [endpoint, { caller, scope: scope as TokenScope | undefined }] as const,
    ),
  ),
);

const CALLERS = [...SCOPE_NAMES, "expired", "revoked", "none"] as const;
type Caller = (typeof CALLERS)[number];

type Outcome = "served" | "401" | "401 invalid_token" | "401 expired" | `403 ${TokenScope}`;

/**
 * Returns the outcome that docs/http-api.md promises for a request of this caller. A browser's session ends together
 * with its token, so the browser then gets a 401.
 */
function documentedOutcome(endpoint: string, caller: Caller): Outcome {
  const { caller: wanted, scope } = DOCUMENTED.get(endpoint)!;
  if (wanted === "session") {
    const hasSession = caller !== "none" && caller !== "expired" && caller !== "revoked";
    if (!hasSession) return "401";
    // Every browser session has the scope `read`.
    if (scope === "read" && endpoint.startsWith("POST ")) return "served";
    return scope === undefined || scope === caller ? "served" : `403 ${scope}`;
  }
  if (caller === "expired") return "401 expired";
  if (caller === "revoked") return "401 invalid_token";
  if (caller === "none") return wanted === "all" ? "served" : "401";
  return scope === undefined || scope === caller ? "served" : `403 ${scope}`;
}

/** WhatsApp's webhook asks for no token. It answers 403 if the signature or its setting is missing. */
const SIGNED = "/api/messaging/whatsapp";

async function readOutcome(answer: Response, path: string): Promise<Outcome> {
  expect(path === SIGNED ? [421, 429] : [403, 421, 429]).not.toContain(
    answer.headers.has("www-authenticate") ? 0 : answer.status,
  );
  const challenge = answer.headers.get("www-authenticate") ?? "";
  const text =
    answer.body === null || answer.headers.get("content-type") === "text/event-stream" ? "" : await answer.text();
  if (challenge === "") return answer.status === 401 && path !== "/session" ? "401" : "served";
  if (!challenge.startsWith("Bearer ")) return "served";
  const scope = /error="insufficient_scope", scope="(\w+)"$/.exec(challenge)?.[1] as TokenScope | undefined;
  if (scope !== undefined) {
    expect([answer.status, text]).toEqual([403, expect.stringContaining(`The token lacks the scope \`${scope}\``)]);
    return `403 ${scope}`;
  }
  expect(answer.status).toBe(401);
  if (text.includes("The token has expired. Create one with `reachlog token new`.")) return "401 expired";
  return challenge.endsWith('error="invalid_token"') ? "401 invalid_token" : "401";
}

const world = await openApp({ authPolicy: "strict", hosts: ["127.0.0.1"] });
const { http, reserved } = await withPort(loadConfig({ PORT: "0" }, () => "").http);
const { port } = http;
await reserved[Symbol.asyncDispose]();
const server = await listen(world.app, { host: "127.0.0.1", port }, world.deps.load);

describe("every endpoint, with each scope and with an expired, a revoked and no token", () => {
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });
  const url = `http://127.0.0.1:${port}`;

  /**
   * Sends a request that changes nothing: its body is empty, so an endpoint that admits the caller refuses the body.
   */
  async function request(method: string, path: string, headers: Record<string, string>): Promise<Response> {
    const leaving = new AbortController();
    const answer = await fetch(url + path, {
      method,
      headers: { accept: "application/json", ...headers },
      redirect: "manual",
      signal: leaving.signal,
      ...(method === "POST" ? { body: "" } : {}),
    });
    if (answer.headers.get("content-type") === "text/event-stream") leaving.abort();
    return answer;
  }

  /** Returns the cookie of a browser that signed in with the token, or the refusal. */
  async function signIn(secret: string): Promise<string | Response> {
    const answer = await fetch(`${url}/session`, {
      method: "POST",
      body: new URLSearchParams({ token: secret }),
      redirect: "manual",
    });
    return answer.status === 303 ? (answer.headers.get("set-cookie") ?? "").split(";")[0]! : answer;
  }

  const tokens: Readonly<Record<Caller, ApiToken | undefined>> = {
    ...(Object.fromEntries(SCOPE_NAMES.map((name) => [name, toToken(`${name}-token`, { scopes: [name] })])) as Record<
      TokenScope,
      ApiToken
    >),
    expired: toToken("expired-token", { expiresAt: 1 }),
    revoked: undefined,
    none: undefined,
  };
  /** Creates a token for a browser, which needs the scope `read` to sign in. */
  const forBrowser = (scopes: readonly TokenScope[]) => toToken("browser-token", { name: "browser", scopes });
  const inForce = Object.values(tokens).filter((token) => token !== undefined);

  async function askAsProgram(method: string, path: string, caller: Caller): Promise<Outcome> {
    world.deps.authentication.replace(inForce);
    const headers: Record<string, string> = caller === "none" ? {} : { authorization: `Bearer ${caller}-token` };
    return readOutcome(await request(method, path, headers), path);
  }

  async function askAsBrowser(method: string, path: string, caller: Caller): Promise<Outcome> {
    const isScope = caller !== "none" && caller !== "expired" && caller !== "revoked";
    const scopes: readonly TokenScope[] = isScope
      ? [caller, ...(method === "POST" ? (["read"] as const) : [])]
      : ["read"];
    world.deps.authentication.replace([...inForce, forBrowser(scopes)]);
    const cookie = caller === "none" ? "" : await signIn("browser-token");
    if (typeof cookie !== "string") return readOutcome(cookie, path);
    if (caller === "revoked") world.deps.authentication.replace(inForce);
    if (caller === "expired")
      world.deps.authentication.replace([...inForce, { ...forBrowser(scopes), expiresAt: world.now }]);
    return readOutcome(await request(method, path, { cookie }), path);
  }

  const endpoints = describeEndpoints().map(({ method, path }) => ({ method, path }));

  test("is listed in the guide", () => {
    expect([...DOCUMENTED.keys()].toSorted()).toEqual(
      endpoints.map(({ method, path }) => `${method} ${path}`).toSorted(),
    );
  });

  test.each(endpoints)("answers as the guide documents: $method $path", async ({ method, path }) => {
    // The number of wrong tokens is limited per minute, so a minute passes before each test.
    world.now += 60_000;
    const endpoint = `${method} ${path}`;
    const askAs = DOCUMENTED.get(endpoint)!.caller === "session" ? askAsBrowser : askAsProgram;
    for (const caller of CALLERS) {
      expect([caller, await askAs(method, path, caller)]).toEqual([caller, documentedOutcome(endpoint, caller)]);
    }
  });
});

describe("a token", () => {
  const click = (domain: string) => ({ ...GOOD["/api/tracking/event"], domain });

  test("records only clicks of the domains that it is restricted to", async () => {
    await using world = await openApp();
    world.deps.authentication.replace([toToken("narrow", { scopes: ["track"], links: ["go.example", "sho.rt"] })]);
    const status = async (domain: string) =>
      (await post(world.app, "/api/tracking/event", click(domain), { token: "narrow" })).status;
    expect([await status("go.example"), await status("SHO.RT:443"), await status("go.example.evil")]).toEqual([
      202, 202, 403,
    ]);
    const refused = await post(world.app, "/api/tracking/event", click("other.example"), { token: "narrow" });
    expect(await refused.clone().json()).toMatchObject({
      detail: "The token records clicks of go.example, sho.rt only.",
    });
    expect(await problemIn(refused)).toBe("403 other-domain");
    // A token does not get the answer that another token received, even if both belong to one caller and send the same
    // idempotency key.
    const headers = { "idempotency-key": "k1" };
    world.deps.authentication.replace([
      toToken("narrow", { scopes: ["track"], links: ["go.example"] }),
      toToken("wide"),
    ]);
    const repeat = async (token: string) =>
      (await post(world.app, "/api/tracking/event", click("sho.rt"), { token, headers })).status;
    expect([await repeat("wide"), await repeat("wide"), await repeat("narrow")]).toEqual([202, 202, 403]);
    expect((await world.events("LinkClicked")).map(({ data }) => data.domain)).toEqual([
      "go.example",
      "sho.rt",
      "sho.rt",
    ]);
  });

  test("expires together with its sessions, and does not count as a failure", async () => {
    await using world = await openApp({ authPolicy: "strict" });
    const expiresAt = world.now + 60_000;
    world.deps.authentication.replace([toToken(TOKEN, { scopes: ["read"], expiresAt })]);
    const signIn = () =>
      post(world.app, "/session", `token=${TOKEN}`, {
        headers: { "content-type": "application/x-www-form-urlencoded" },
      });
    const cookie = ((await signIn()).headers.get("set-cookie") ?? "").split(";")[0]!;
    const page = async () => (await ask(world.app, "/", { headers: { cookie } })).status;
    const stats = async () => (await ask(world.app, "/social/stats", { token: TOKEN })).status;
    world.now = expiresAt - 1;
    expect([await page(), await stats()]).toEqual([200, 200]);
    world.now = expiresAt;
    expect([await page(), await stats()]).toEqual([401, 401]);
    expect(await problemIn(await signIn())).toBe("401 expired-token");
    for (let again = 0; again < 20; again++) {
      expect(await problemIn(await ask(world.app, "/social/health", { token: TOKEN }))).toBe("401 expired-token");
    }
  });

  test("loses a removed scope in its sessions at once", async () => {
    await using world = await openApp({ authPolicy: "strict" });
    const replace = (...scopes: TokenScope[]) => world.deps.authentication.replace([toToken(TOKEN, { scopes })]);
    replace("read", "run");
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const signedIn = await post(world.app, "/session", `token=${TOKEN}`, { headers: form });
    const cookie = (signedIn.headers.get("set-cookie") ?? "").split(";")[0]!;
    const status = async (path: string) =>
      (await ask(world.app, path, { method: "POST", body: "", headers: { ...form, cookie } })).status;
    expect(await status("/console/run/stop")).toBe(422);
    replace("read");
    expect(await status("/console/run/stop")).toBe(403);
    replace("run");
    expect((await ask(world.app, "/", { headers: { cookie } })).status).toBe(401);
  });

  test("has all scopes if none are configured", async () => {
    await using world = await openApp({ authPolicy: "strict" });
    expect((await ask(world.app, "/social/stats", { token: TOKEN })).status).toBe(200);
    expect((await post(world.app, "/api/notify", GOOD["/api/notify"], { token: TOKEN })).status).toBe(200);
  });
});
