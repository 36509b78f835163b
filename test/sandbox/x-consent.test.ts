// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { consent, consentRequest, personId, queryOf } from "./call-simulated-x.ts";

describe("the sandbox's consent page", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox();
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const ask = (spoiled: Record<string, string> = {}): Promise<Response> =>
    fetch(`${sandbox.urls.xAuthorize}?${consentRequest(sandbox, spoiled).toString()}`, { redirect: "manual" });

  test("shows the app, accounts and scopes, and escapes the state", async () => {
    const answer = await ask({ state: '"><script>alert(1)</script>' });
    const page = await answer.text();
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    for (const shown of ["wants to access", "@acme_team", "@someone_else", "Send direct messages", "Authorize app"]) {
      expect(page).toContain(shown);
    }
    expect(page).not.toContain("<script>");
  });

  test("shows an unregistered client or redirect an error page, never a redirect", async () => {
    for (const spoiled of [
      { client_id: "other" },
      { redirect_uri: "https://evil.example/social/callback" },
      { redirect_uri: "http://127.0.0.1.evil.example/social/callback" },
      { redirect_uri: "http://127.0.0.1:9/other" },
      { redirect_uri: "http://127.0.0.1:9/social/callback?x=1" },
      { redirect_uri: "nonsense" },
    ]) {
      const page = await ask(spoiled);
      expect([page.status, page.headers.get("location")]).toEqual([400, null]);
    }
  });

  test("compares registered redirects exactly", async () => {
    await using strict = await startSandbox({ xApp: { redirectUris: ["https://reach.example/social/callback"] } });
    const status = async (redirect_uri: string): Promise<number> =>
      (await fetch(`${strict.urls.xAuthorize}?${consentRequest(strict, { redirect_uri }).toString()}`)).status;
    expect(await status("https://reach.example/social/callback")).toBe(200);
    expect(await status("https://reach.example/social/callback/")).toBe(400);
    expect(await status("http://127.0.0.1:9/social/callback")).toBe(400);
  });

  test("redirects an invalid request back with its state", async () => {
    for (const [spoiled, error] of [
      [{ code_challenge_method: "plain" }, "invalid_request"],
      [{ code_challenge: "short" }, "invalid_request"],
      [{ state: "s".repeat(501) }, "invalid_request"],
      [{ scope: "everything" }, "invalid_scope"],
      [{ scope: "" }, "invalid_scope"],
      [{ response_type: "token" }, "unsupported_response_type"],
    ] as const) {
      const sent = queryOf(await ask(spoiled));
      expect(sent).toEqual({ state: "state" in spoiled ? spoiled.state : "state", error });
    }
  });

  test("redirects with access_denied after a cancel or for an unknown account", async () => {
    const account = personId(sandbox, "acme_team");
    for (const choice of [
      { account, decision: "cancel" },
      { account: personId(sandbox, "ada_builds"), decision: "authorize" },
      { account: "5", decision: "authorize" },
    ]) {
      const sent = queryOf(await consent(sandbox, consentRequest(sandbox, choice)));
      expect(sent).toEqual({ state: "state", error: "access_denied" });
    }
    expect(sandbox.x.codes.size).toBe(0);
  });
});
