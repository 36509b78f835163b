// These tests run parts of the service inside the test process.
import { createHash } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { createOAuth, OAuthError, SCOPES, type BasicEncoding, type OAuth } from "../../src/account/oauth.ts";
import { secret } from "../../src/platform/secret.ts";
import { deadUrl, safeFetchTo, serve, serveRaw } from "../harness/in-process/local-test-servers.ts";

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

function oauthAt(apiUrl: string, clientSecret?: string, basicEncoding: BasicEncoding = "raw"): OAuth {
  return createOAuth({
    clientId: "the-client",
    basicEncoding,
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

/** Returns the error of a refusal, after checking that it contains no secret. */
async function faultOf(work: Promise<unknown>): Promise<OAuthError> {
  const fault = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(fault).toBeInstanceOf(OAuthError);
  expect(Bun.inspect(fault)).not.toContain(CANARY);
  return fault as OAuthError;
}

test("the authorization URL has the verifier's hash as challenge, and a fresh state", async () => {
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

test("a code is exchanged with the verifier for the granted tokens", async () => {
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

test("by default a token lives for two hours and has the requested scopes", async () => {
  await using server = serve(() => Response.json({ token_type: "bearer", access_token: "a" }));
  expect(await oauthAt(server.url).refresh("r")).toEqual({
    accessToken: "a",
    refreshToken: undefined,
    expiresAt: NOW + 7_200_000,
    scopes: SCOPES,
  });
});

test("a confidential client sends id and secret in Basic without percent-encoding", async () => {
  await using server = serve(() => Response.json(GRANTED));
  await oauthAt(server.url, "s-e_c+r/e=t").refresh("the-refresh-token");
  const [asked] = server.requests;
  expect(asked?.headers.get("authorization")).toBe(`Basic ${btoa("the-client:s-e_c+r/e=t")}`);
  expect(Object.fromEntries(redirect(asked?.body ?? ""))).toEqual({
    grant_type: "refresh_token",
    refresh_token: "the-refresh-token",
  });
});

test.each([
  ["raw", "a%2Bb+c"],
  // RFC 6749, section 2.3.1, encodes the secret as in a form: https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
  ["form", "a%252Bb%2Bc"],
] as const)("a secret with %% and + is encoded in Basic as configured: %s", async (encoding, shown) => {
  await using server = serve(() => Response.json(GRANTED));
  const oauth = oauthAt(server.url, "a%2Bb+c", encoding);
  await oauth.refresh("the-refresh-token");
  await oauth.revoke("the-token");
  const sent = server.requests.map(({ headers }) => atob(headers.get("authorization")?.slice("Basic ".length) ?? ""));
  // The OAuth library also encodes characters that need no encoding, such as `-`. A server that decodes them reads the
  // same secret.
  expect(sent.map((pair) => pair.replaceAll("%2D", "-"))).toEqual(Array(2).fill(`the-client:${shown}`));
});

test("a token is revoked at the network", async () => {
  await using server = serve(() => Response.json({ revoked: true }));
  await oauthAt(server.url).revoke("the-token");
  expect([server.requests[0]?.path, redirect(server.requests[0]?.body ?? "").get("token")]).toEqual([
    "/2/oauth2/revoke",
    "the-token",
  ]);
});

describe("a redirect", () => {
  test.each([
    ["another state", `state=other&code=${CODE}`],
    ["no state", `code=${CODE}`],
    ["no code", "state=the-state"],
    ["two states", `state=the-state&state=the-state&code=${CODE}`],
    ["a denial by the user", "state=the-state&error=access_denied"],
  ])("with %s is refused without a request to the network", async (_what, query) => {
    await using server = serve(() => Response.json(GRANTED));
    const { kind, message } = await faultOf(oauthAt(server.url).exchange(redirect(query), started));
    expect(kind).toBe("rejected");
    expect(message).toBe(
      query.includes("error") ? "access_denied" : "the redirect does not match the authorization that was started",
    );
    expect(server.requests).toEqual([]);
  });
});

const STALE = { error: "invalid_request", error_description: `Value passed for the token was invalid. ${CANARY}` };
const CHECK = "check X_CLIENT_ID and X_CLIENT_SECRET";
const CHALLENGE = { "www-authenticate": 'Basic realm="x"' };
const problem = (status: number) => () =>
  Response.json({ title: "t", status }, { status, headers: { "content-type": "application/problem+json" } });

describe("a response of the network", () => {
  const answers = {
    "400 invalid_request for a stale token": () => Response.json(STALE, { status: 400 }),
    "400 invalid_grant": () => Response.json({ error: "invalid_grant" }, { status: 400 }),
    "401 invalid_grant, with a challenge": () =>
      Response.json({ error: "invalid_grant" }, { status: 401, headers: CHALLENGE }),
    "400 about something else in the request": () =>
      Response.json({ error: "invalid_request", error_description: "Missing required parameter" }, { status: 400 }),
    "400 unknown to RFC 6749": () => Response.json({ error: "try_again" }, { status: 400 }),
    "401 invalid_client, with a challenge": () =>
      Response.json({ error: "invalid_client" }, { status: 401, headers: CHALLENGE }),
    "401 with a challenge only": () => new Response(null, { status: 401, headers: CHALLENGE }),
    "401 without a body": () => new Response(null, { status: 401 }),
    "401 with a problem of X": problem(401),
    "401 invalid_request": () => Response.json({ error: "invalid_request" }, { status: 401 }),
    "401 to the app": () => Response.json({ error: "unauthorized_client" }, { status: 401 }),
    "400 to the app": () => Response.json({ error: "invalid_client" }, { status: 400 }),
    "403": problem(403),
    "429": problem(429),
    "429 with an OAuth body": () => Response.json({ error: "slow_down" }, { status: 429 }),
    "400 without an OAuth body": () => new Response("proxy says no", { status: 400 }),
    "a redirect": () => Response.redirect("http://127.0.0.1:1/"),
    "500": () => new Response("oops", { status: 500 }),
    "503 with an OAuth body": () => Response.json({ error: "temporarily_unavailable" }, { status: 503 }),
    "503 with an error that ends a grant": () => Response.json(STALE, { status: 503 }),
    "200 in HTML": () => new Response(CANARY, { headers: { "content-type": "text/html" } }),
    "200 cut short": () => new Response('{"access_token":"canary', { headers: JSON_TYPE }),
    "200 without a token": () => Response.json({ token_type: "bearer" }),
    "200 with an empty object": () => Response.json({}),
    "200 with an invalid lifetime": () => Response.json({ ...GRANTED, expires_in: "soon" }),
  };
  const faultFor = async (answer: keyof typeof answers): Promise<OAuthError> => {
    await using server = serve(answers[answer]);
    return await faultOf(oauthAt(server.url, `${CANARY}-secret`).refresh(`${CANARY}-refresh`));
  };

  test.each([
    "400 invalid_request for a stale token",
    "400 invalid_grant",
    "401 invalid_grant, with a challenge",
  ] as const)("%s to a refresh means that the grant is dead", async (answer) =>
    expect(await faultFor(answer)).toMatchObject({ kind: "rejected", isUnsettled: false }),
  );

  test.each([
    "401 invalid_client, with a challenge",
    "401 with a challenge only",
    "401 without a body",
    "401 with a problem of X",
    "401 invalid_request",
    "401 to the app",
    "400 to the app",
  ] as const)("%s to a refresh blames the app's credentials, not the grant", async (answer) => {
    const { kind, message, isUnsettled } = await faultFor(answer);
    expect([kind, isUnsettled, message]).toEqual(["unavailable", false, expect.stringContaining(CHECK)]);
  });

  test.each([
    "400 about something else in the request",
    "400 unknown to RFC 6749",
    "400 without an OAuth body",
    "403",
    "429",
    "429 with an OAuth body",
  ] as const)("%s to a refresh leaves the refresh token unused", async (answer) =>
    expect(await faultFor(answer)).toMatchObject({ kind: "unavailable", isUnsettled: false }),
  );

  test.each([
    "a redirect",
    "500",
    "503 with an OAuth body",
    "503 with an error that ends a grant",
    "200 in HTML",
    "200 cut short",
    "200 without a token",
    "200 with an empty object",
    "200 with an invalid lifetime",
  ] as const)("%s to a refresh leaves the refresh token in doubt", async (answer) =>
    expect(await faultFor(answer)).toMatchObject({ kind: "unavailable", isUnsettled: true }),
  );

  test("counts as an outage if a code gets no token", async () => {
    await using server = serve(() => Response.json({}));
    const fault = await faultOf(oauthAt(server.url).exchange(redirect(GOOD_REDIRECT), started));
    expect(fault.kind).toBe("unavailable");
  });

  test.each([401, 400])("%d with invalid_client for a code blames the app's credentials", async (status) => {
    await using server = serve(() => Response.json({ error: "invalid_client" }, { status, headers: CHALLENGE }));
    const fault = await faultOf(oauthAt(server.url, "s").exchange(redirect(GOOD_REDIRECT), started));
    expect([fault.kind, fault.message]).toEqual(["unavailable", `invalid_client: ${CHECK}`]);
  });

  test("mentions X_BASIC_ENCODING after invalid_client if that changes the secret", async () => {
    await using server = serve(() => Response.json({ error: "invalid_client" }, { status: 401, headers: CHALLENGE }));
    const { message } = await faultOf(oauthAt(server.url, "a+b").refresh("r"));
    expect(message).toBe(`invalid_client: ${CHECK}, or X_BASIC_ENCODING`);
  });

  test("is reported without an unknown error code", async () => {
    await using server = serve(() => Response.json({ error: `${CANARY}\u0000` }, { status: 400 }));
    expect((await faultOf(oauthAt(server.url).refresh("r"))).message).toEndWith(": unknown_error");
    const fault = await faultOf(oauthAt(server.url).exchange(redirect(GOOD_REDIRECT), started));
    expect([fault.kind, fault.message]).toEqual(["rejected", "unknown_error"]);
  });

  test("leaves the refresh token in doubt if it breaks off", async () => {
    await using server = await serveRaw((socket) => socket.resetAndDestroy());
    const fault = await faultOf(oauthAt(server.url).refresh(`${CANARY}-refresh`));
    expect(fault).toMatchObject({ kind: "unavailable", isUnsettled: true });
  });

  test("leaves nothing in doubt if there is no server", async () => {
    const oauth = oauthAt(await deadUrl());
    for (const asked of [oauth.exchange(redirect(GOOD_REDIRECT), started), oauth.refresh("r")])
      expect(await faultOf(asked)).toMatchObject({ kind: "unavailable", isUnsettled: false });
  });
});

const JSON_TYPE = { "content-type": "application/json" };
