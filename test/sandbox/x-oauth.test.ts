// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { settingsOf } from "../../sandbox/service-settings.ts";
import { revokeAll } from "../../sandbox/x/tokens.ts";
import {
  ALL_SCOPES,
  authorizationCode,
  authorized,
  callX,
  postForm,
  REDIRECT,
  type Tokens,
} from "./call-simulated-x.ts";

describe("the sandbox's OAuth server of X", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox();
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

  const token = (form: Record<string, string>, authorization?: string | null): Promise<Response> =>
    postForm(sandbox, "token", form, authorization);
  const refresh = (refresh_token: string): Promise<Response> => token({ grant_type: "refresh_token", refresh_token });
  const me = async (access: string): Promise<number> => (await callX(sandbox, "/users/me", access)).status;

  test("verifies PKCE and consumes a code that failed", async () => {
    const { code, verifier } = await authorizationCode(sandbox);
    const form = { grant_type: "authorization_code", code, redirect_uri: REDIRECT };
    await refused(
      await token({ ...form, code_verifier: `${verifier}x` }),
      "Value passed for the code verifier did not match the code challenge.",
    );
    await refused(await token({ ...form, code_verifier: verifier }), CODE);
  });

  test("accepts a code once, for 30 seconds, and only for its own redirect", async () => {
    const first = await authorizationCode(sandbox);
    const form = { grant_type: "authorization_code", redirect_uri: REDIRECT };
    const good = { ...form, code: first.code, code_verifier: first.verifier };
    expect(await (await token(good)).json()).toMatchObject({
      token_type: "bearer",
      expires_in: 7200,
      scope: ALL_SCOPES,
    });
    await refused(await token(good), CODE);

    const late = await authorizationCode(sandbox);
    sandbox.clock.advance(30_000);
    await refused(await token({ ...form, code: late.code, code_verifier: late.verifier }), CODE);

    const other = await authorizationCode(sandbox);
    const elsewhere = { ...form, redirect_uri: "http://127.0.0.1:8/social/callback" };
    await refused(
      await token({ ...elsewhere, code: other.code, code_verifier: other.verifier }),
      "Value passed for the redirect uri did not match the uri of the authorization code.",
    );
  });

  test("names a missing parameter and accepts only forms", async () => {
    await refused(await token({ grant_type: "authorization_code" }), "Missing required parameter [code].");
    await refused(await token({ grant_type: "refresh_token" }), "Missing required parameter [refresh_token].");
    expect((await token({ grant_type: "password" })).status).toBe(400);
    const json = await fetch(`${sandbox.urls.xApi}/2/oauth2/token`, { method: "POST", body: "{}" });
    expect(json.status).toBe(400);
  });

  const basicOf = (id: string, password: string): string =>
    `Basic ${Buffer.from(`${id}:${password}`).toString("base64")}`;
  const answered = async (answer: Response) => [
    answer.status,
    answer.headers.get("www-authenticate"),
    await answer.json(),
  ];
  const MISSING = { error: "unauthorized_client", error_description: "Missing valid authorization header" };
  const FAILED = { error: "invalid_client", error_description: "Client authentication failed." };

  test("requires raw Basic credentials of a confidential client, not percent-encoded ones", async () => {
    const { clientId, clientSecret } = sandbox.x;
    const encoded = clientSecret.replaceAll("-", "%2D").replaceAll("_", "%5F");
    const form = { grant_type: "refresh_token", refresh_token: "x", client_id: clientId };
    expect(await answered(await token(form, null))).toEqual([401, null, MISSING]);
    // A failed Basic authentication is answered with a challenge: https://www.rfc-editor.org/rfc/rfc6749#section-5.2
    for (const header of [basicOf(clientId, encoded), basicOf("other", clientSecret), "Basic !", "Bearer x"])
      expect(await answered(await token(form, header))).toEqual([401, 'Basic realm="oauth"', FAILED]);
    expect((await token(form)).status).toBe(400);
  });

  test("requires form-encoded Basic credentials where it follows RFC 6749", async () => {
    const clientSecret = "a%2Bb+c";
    await using strict = await startSandbox({ xApp: { basic: "form", clientSecret } });
    const { clientId } = strict.x;
    const form = { grant_type: "refresh_token", refresh_token: "x" };
    const ask = (password: string) => postForm(strict, "token", form, basicOf(clientId, password));
    expect((await ask("a%252Bb%2Bc")).status).toBe(400);
    expect((await ask("%61%252Bb%2Bc")).status).toBe(400);
    for (const password of [clientSecret, "%", "%zz"])
      expect(await answered(await ask(password))).toEqual([401, 'Basic realm="oauth"', FAILED]);
  });

  test("accepts a public client by the id in the body, without a secret", async () => {
    await using open = await startSandbox({ xApp: { publicClient: true } });
    expect(settingsOf(open)).not.toHaveProperty("X_CLIENT_SECRET");
    const { code, verifier } = await authorizationCode(open);
    const form = { grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: REDIRECT };
    expect((await postForm(open, "token", form, null)).status).toBe(401);
    expect((await postForm(open, "token", { ...form, client_id: open.x.clientId }, null)).status).toBe(200);
  });

  test("rotates refresh tokens; reuse of one ends the whole family", async () => {
    const first = await authorized(sandbox);
    const renewed = (await (await refresh(first.refresh_token)).json()) as Tokens;
    expect(renewed.refresh_token).not.toBe(first.refresh_token);
    expect([await me(first.access_token), await me(renewed.access_token)]).toEqual([401, 200]);
    await refused(await refresh(first.refresh_token), TOKEN);
    await refused(await refresh(renewed.refresh_token), TOKEN);
    expect(await me(renewed.access_token)).toBe(401);
    expect(sandbox.x.refreshUses.get(first.refresh_token)).toBe(2);
  });

  test("ends access tokens after two hours and refresh tokens after half a year", async () => {
    const { access_token, refresh_token } = await authorized(sandbox);
    sandbox.clock.advance(7_199_000);
    expect(await me(access_token)).toBe(200);
    sandbox.clock.advance(1_000);
    expect(await me(access_token)).toBe(401);
    expect(await authorized(sandbox, "users.read tweet.read")).not.toHaveProperty("refresh_token");
    sandbox.clock.advance(182 * 24 * 3_600_000);
    await refused(await refresh(refresh_token), TOKEN);
  });

  test("revokes an access token alone, or a refresh token with its access tokens", async () => {
    const first = await authorized(sandbox);
    expect((await postForm(sandbox, "revoke", { token: first.access_token })).status).toBe(200);
    expect(await me(first.access_token)).toBe(401);
    const renewed = (await (await refresh(first.refresh_token)).json()) as Tokens;
    expect(await me(renewed.access_token)).toBe(200);
    await postForm(sandbox, "revoke", { token: renewed.refresh_token });
    expect(await me(renewed.access_token)).toBe(401);
    await refused(await refresh(renewed.refresh_token), TOKEN);
  });

  test("ends every grant when the user removes the app", async () => {
    const { access_token, refresh_token } = await authorized(sandbox);
    revokeAll(sandbox.x);
    expect(await me(access_token)).toBe(401);
    await refused(await refresh(refresh_token), TOKEN);
    expect(await me((await authorized(sandbox)).access_token)).toBe(200);
  });
});
