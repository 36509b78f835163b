import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { ALL_SCOPES, authorizationCode, authorized, callX, REDIRECT, token } from "./client.ts";

describe("the sandbox's X authorizes no more easily than X", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const refused = async (answer: Response, description: string): Promise<void> => {
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: "invalid_request", error_description: description },
    ]);
  };
  const CODE = "Value passed for the authorization code was invalid.";
  const TOKEN = "Value passed for the token was invalid.";

  test("PKCE is verified, and a code that failed is used up", async () => {
    const { code, verifier } = await authorizationCode(sandbox);
    const form = { grant_type: "authorization_code", code, redirect_uri: REDIRECT };
    expect((await token(sandbox, { ...form, code_verifier: `${verifier}x` })).status).toBe(400);
    await refused(await token(sandbox, { ...form, code_verifier: verifier }), CODE);
  });

  test("a code works once, for 30 seconds, and for its own redirect", async () => {
    const first = await authorizationCode(sandbox);
    const form = { grant_type: "authorization_code", redirect_uri: REDIRECT };
    const good = { ...form, code: first.code, code_verifier: first.verifier };
    expect(await (await token(sandbox, good)).json()).toMatchObject({
      token_type: "bearer",
      expires_in: 7200,
      scope: ALL_SCOPES,
    });
    await refused(await token(sandbox, good), CODE);

    const late = await authorizationCode(sandbox);
    sandbox.clock.advance(31_000);
    await refused(await token(sandbox, { ...form, code: late.code, code_verifier: late.verifier }), CODE);

    const other = await authorizationCode(sandbox);
    const elsewhere = { ...form, redirect_uri: "http://127.0.0.1:8/social/callback" };
    expect((await token(sandbox, { ...elsewhere, code: other.code, code_verifier: other.verifier })).status).toBe(400);
  });

  test("the client identifies itself by raw Basic, never percent-encoded", async () => {
    const { clientId, clientSecret } = sandbox.x;
    const encoded = clientSecret.replaceAll("-", "%2D").replaceAll("_", "%5F");
    const header = `Basic ${Buffer.from(`${clientId}:${encoded}`).toString("base64")}`;
    const answer = await token(sandbox, { grant_type: "refresh_token", refresh_token: "x" }, header);
    expect([answer.status, await answer.json()]).toEqual([
      401,
      { error: "unauthorized_client", error_description: "Missing valid authorization header" },
    ]);
  });

  test("refresh tokens rotate; a used one again ends the whole family", async () => {
    const first = await authorized(sandbox);
    const renewed = (await (
      await token(sandbox, { grant_type: "refresh_token", refresh_token: first.refresh_token })
    ).json()) as typeof first;
    expect(renewed.refresh_token).not.toBe(first.refresh_token);
    expect((await callX(sandbox, "/users/me", first.access_token)).status).toBe(401);
    expect((await callX(sandbox, "/users/me", renewed.access_token)).status).toBe(200);
    await refused(await token(sandbox, { grant_type: "refresh_token", refresh_token: first.refresh_token }), TOKEN);
    await refused(await token(sandbox, { grant_type: "refresh_token", refresh_token: renewed.refresh_token }), TOKEN);
    expect((await callX(sandbox, "/users/me", renewed.access_token)).status).toBe(401);
  });

  test("an access token lives two hours; without offline.access there is no refresh token", async () => {
    const { access_token } = await authorized(sandbox);
    sandbox.clock.advance(7_199_000);
    expect((await callX(sandbox, "/users/me", access_token)).status).toBe(200);
    sandbox.clock.advance(2_000);
    expect((await callX(sandbox, "/users/me", access_token)).status).toBe(401);
    expect(await authorized(sandbox, "users.read tweet.read")).not.toHaveProperty("refresh_token");
  });

  test("an unknown redirect gets a page, not a redirect; a wrong request is sent back with its state", async () => {
    const ask = (parameters: Record<string, string>): Promise<Response> =>
      fetch(`${sandbox.url}/x-web/i/oauth2/authorize?${new URLSearchParams(parameters).toString()}`, {
        redirect: "manual",
      });
    const good = {
      response_type: "code",
      client_id: sandbox.x.clientId,
      redirect_uri: REDIRECT,
      scope: "users.read",
      state: "s",
      code_challenge: "a".repeat(43),
      code_challenge_method: "S256",
    };
    expect((await ask(good)).status).toBe(200);
    for (const redirect_uri of ["https://evil.example/social/callback", "http://127.0.0.1:9/other"]) {
      const page = await ask({ ...good, redirect_uri });
      expect([page.status, page.headers.get("location")]).toEqual([400, null]);
    }
    for (const [spoiled, error] of [
      [{ code_challenge_method: "plain" }, "invalid_request"],
      [{ scope: "everything" }, "invalid_scope"],
      [{ response_type: "token" }, "unsupported_response_type"],
    ] as const) {
      const sent = new URL((await ask({ ...good, ...spoiled })).headers.get("location") ?? "").searchParams;
      expect(Object.fromEntries(sent)).toEqual({ state: "s", error });
    }
  });
});
