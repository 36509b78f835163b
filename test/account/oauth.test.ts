import { createHash } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { createOAuth, OAuthError, SCOPES, type OAuth } from "../../src/account/oauth.ts";
import { secret } from "../../src/secret.ts";
import { deadUrl, safeFetchTo, serve, serveRaw } from "../networks/servers.ts";

const NOW = Date.parse("2026-03-01T08:00:00Z");
const REDIRECT = "http://127.0.0.1:3000/social/callback";
const CANARY = "canary";
const GRANTED = {
  token_type: "bearer",
  access_token: `${CANARY}-access`,
  refresh_token: `${CANARY}-refresh`,
  expires_in: 7200,
  scope: "dm.write dm.read",
};

function oauthAt(apiUrl: string, clientSecret?: string): OAuth {
  return createOAuth({
    clientId: "the-client",
    clientSecret: clientSecret === undefined ? undefined : secret(clientSecret),
    apiUrl,
    authorizeUrl: "https://x.example/i/oauth2/authorize",
    redirectUri: REDIRECT,
    safeFetch: safeFetchTo(apiUrl),
    clock: () => NOW,
  });
}

const started = { state: "the-state", verifier: `${CANARY}-${"v".repeat(43)}` };
const redirect = (query: string): URLSearchParams => new URLSearchParams(query);
const CODE = `${CANARY}-code`;
const GOOD_REDIRECT = `state=the-state&code=${CODE}`;

/** The error of a refusal, after a look that nothing secret is in it. */
async function faultOf(work: Promise<unknown>): Promise<OAuthError> {
  const fault = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(fault).toBeInstanceOf(OAuthError);
  expect(Bun.inspect(fault)).not.toContain(CANARY);
  return fault as OAuthError;
}

test("the browser is sent out with a challenge that is the verifier's hash, and with a fresh state each time", async () => {
  const oauth = oauthAt("http://127.0.0.1:1");
  const [one, other] = [await oauth.begin(), await oauth.begin()];
  const { origin, pathname, searchParams } = new URL(one.url);
  expect(`${origin}${pathname}`).toBe("https://x.example/i/oauth2/authorize");
  expect(Object.fromEntries(searchParams)).toEqual({
    response_type: "code",
    client_id: "the-client",
    redirect_uri: REDIRECT,
    scope: SCOPES.join(" "),
    state: one.state,
    code_challenge: createHash("sha256").update(one.verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  expect([one.state === other.state, one.verifier === other.verifier]).toEqual([false, false]);
});

test("a code is exchanged with the verifier, and what the network grants comes back", async () => {
  await using server = serve(() => Response.json(GRANTED));
  const pair = await oauthAt(server.url).exchange(redirect(GOOD_REDIRECT), started);
  expect(pair).toEqual({
    accessToken: GRANTED.access_token,
    refreshToken: GRANTED.refresh_token,
    expiresAt: NOW + 7_200_000,
    scopes: ["dm.write", "dm.read"],
  });
  const [asked] = server.requests;
  expect([asked?.method, asked?.path]).toEqual(["POST", "/2/oauth2/token"]);
  expect(Object.fromEntries(redirect(asked?.body ?? ""))).toEqual({
    grant_type: "authorization_code",
    code: CODE,
    redirect_uri: REDIRECT,
    code_verifier: started.verifier,
    client_id: "the-client",
  });
  expect(asked?.headers.get("authorization")).toBeNull();
});

test("where X leaves them out, the life of a token is two hours and the scopes are those asked for", async () => {
  await using server = serve(() => Response.json({ token_type: "bearer", access_token: "a" }));
  expect(await oauthAt(server.url).refresh("r")).toEqual({
    accessToken: "a",
    refreshToken: undefined,
    expiresAt: NOW + 7_200_000,
    scopes: SCOPES,
  });
});

test("a confidential client sends id and secret in Basic as they are, not percent-encoded", async () => {
  await using server = serve(() => Response.json(GRANTED));
  await oauthAt(server.url, "s-e_c+r/e=t").refresh("the-refresh-token");
  const [asked] = server.requests;
  expect(asked?.headers.get("authorization")).toBe(`Basic ${btoa("the-client:s-e_c+r/e=t")}`);
  expect(Object.fromEntries(redirect(asked?.body ?? ""))).toEqual({
    grant_type: "refresh_token",
    refresh_token: "the-refresh-token",
  });
});

test("a token is revoked at the network", async () => {
  await using server = serve(() => Response.json({ revoked: true }));
  await oauthAt(server.url).revoke("the-token");
  expect([server.requests[0]?.path, redirect(server.requests[0]?.body ?? "").get("token")]).toEqual([
    "/2/oauth2/revoke",
    "the-token",
  ]);
});

describe("a redirect that was not started here is refused without a question to the network", () => {
  test.each([
    ["another state", `state=other&code=${CODE}`],
    ["no state", `code=${CODE}`],
    ["no code", "state=the-state"],
    ["two states", `state=the-state&state=the-state&code=${CODE}`],
    ["a person who said no", "state=the-state&error=access_denied"],
  ])("%s", async (_what, query) => {
    await using server = serve(() => Response.json(GRANTED));
    const { kind, message } = await faultOf(oauthAt(server.url).exchange(redirect(query), started));
    expect(kind).toBe("refused");
    expect(message).toBe(
      query.includes("error") ? "access_denied" : "the redirect does not fit the authorization that was started",
    );
    expect(server.requests).toEqual([]);
  });
});

const STALE = { error: "invalid_request", error_description: `Value ${CANARY} passed for the token was invalid.` };

describe("what the network answers to a refresh", () => {
  test.each([
    ["400 as X words it", () => Response.json(STALE, { status: 400 }), "refused"],
    ["400 invalid_grant", () => Response.json({ error: "invalid_grant" }, { status: 400 }), "refused"],
    ["401", () => Response.json({ error: "invalid_request" }, { status: 401 }), "refused"],
    // The app's secret is wrong, which says nothing of the grant.
    ["401 to the app", () => Response.json({ error: "unauthorized_client" }, { status: 401 }), "unreachable"],
    ["400 to the app", () => Response.json({ error: "invalid_client" }, { status: 400 }), "unreachable"],
    [
      "401 with a challenge only",
      () => new Response(null, { status: 401, headers: { "www-authenticate": 'Basic realm="x"' } }),
      "refused",
    ],
    ["429", () => Response.json({ title: "Too Many Requests" }, { status: 429 }), "unreachable"],
    ["429 in the words of OAuth", () => Response.json({ error: "slow_down" }, { status: 429 }), "unreachable"],
    ["500", () => new Response("oops", { status: 500 }), "unreachable"],
    [
      "503 with an OAuth body",
      () => Response.json({ error: "temporarily_unavailable" }, { status: 503 }),
      "unreachable",
    ],
    ["400 without an OAuth body", () => new Response("proxy says no", { status: 400 }), "unreachable"],
    ["200 that is no JSON", () => new Response(CANARY, { headers: { "content-type": "text/html" } }), "unreachable"],
    ["200 cut short", () => new Response('{"access_token":"canary', { headers: JSON_TYPE }), "unreachable"],
    ["200 without a token", () => Response.json({ token_type: "bearer" }), "unreachable"],
    ["200 with an empty object", () => Response.json({}), "unreachable"],
    ["200 with a life that is no number", () => Response.json({ ...GRANTED, expires_in: "soon" }), "unreachable"],
    ["a redirect", () => Response.redirect("http://127.0.0.1:1/"), "unreachable"],
  ] as const)("%s", async (_what, answer, kind) => {
    await using server = serve(answer);
    const fault = await faultOf(oauthAt(server.url, `${CANARY}-secret`).refresh(`${CANARY}-refresh`));
    expect(fault.kind).toBe(kind);
  });

  test("an odd answer to a code is the network's fault, not the redirect's", async () => {
    await using server = serve(() => Response.json({}));
    const fault = await faultOf(oauthAt(server.url).exchange(redirect(GOOD_REDIRECT), started));
    expect(fault.kind).toBe("unreachable");
  });

  test("an error code that may hold anything is not repeated", async () => {
    await using server = serve(() => Response.json({ error: `${CANARY}\u0000` }, { status: 400 }));
    expect((await faultOf(oauthAt(server.url).refresh("r"))).message).toBe("unknown_error");
  });

  test("a connection that breaks", async () => {
    await using server = await serveRaw((socket) => socket.resetAndDestroy());
    expect((await faultOf(oauthAt(server.url).refresh(`${CANARY}-refresh`))).kind).toBe("unreachable");
  });

  test("nobody there", async () => {
    const fault = await faultOf(oauthAt(await deadUrl()).exchange(redirect(GOOD_REDIRECT), started));
    expect(fault.kind).toBe("unreachable");
  });
});

const JSON_TYPE = { "content-type": "application/json" };
