import { createHash, randomBytes } from "node:crypto";
import type { Sandbox } from "../../sandbox/sandbox.ts";

export const REDIRECT = "http://127.0.0.1:9/social/callback";
export const ALL_SCOPES = "dm.write dm.read tweet.read users.read follows.read list.read offline.access";

const basic = ({ x }: Sandbox): string => `Basic ${Buffer.from(`${x.clientId}:${x.clientSecret}`).toString("base64")}`;

/** Returns the parameters of a valid consent request; those in `spoiled` replace valid ones. */
export function consentRequest(sandbox: Sandbox, spoiled: Record<string, string> = {}): URLSearchParams {
  return new URLSearchParams({
    response_type: "code",
    client_id: sandbox.x.clientId,
    redirect_uri: REDIRECT,
    scope: ALL_SCOPES,
    state: "state",
    code_challenge: "a".repeat(43),
    code_challenge_method: "S256",
    ...spoiled,
  });
}

/** Submits the form of the consent page. */
export function consent(sandbox: Sandbox, form: URLSearchParams): Promise<Response> {
  return fetch(sandbox.urls.xAuthorize, { method: "POST", body: form, redirect: "manual" });
}

export function queryOf(redirect: Response): Record<string, string> {
  return Object.fromEntries(new URL(redirect.headers.get("location") ?? "").searchParams);
}

export async function authorizationCode(
  sandbox: Sandbox,
  scope = ALL_SCOPES,
): Promise<{ code: string; verifier: string }> {
  const verifier = randomBytes(32).toString("base64url");
  const form = consentRequest(sandbox, {
    scope,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    account: personId(sandbox, "acme_team"),
    decision: "authorize",
  });
  return { code: queryOf(await consent(sandbox, form))["code"] ?? "", verifier };
}

/** Posts a form to an OAuth endpoint. `authorization` is null to send no credentials, as a public client does. */
export function postForm(
  sandbox: Sandbox,
  endpoint: "token" | "revoke",
  form: Record<string, string>,
  authorization: string | null = basic(sandbox),
): Promise<Response> {
  return fetch(`${sandbox.urls.xApi}/2/oauth2/${endpoint}`, {
    method: "POST",
    headers: authorization === null ? {} : { authorization },
    body: new URLSearchParams(form),
  });
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

export async function authorized(sandbox: Sandbox, scope = ALL_SCOPES): Promise<Tokens> {
  const { code, verifier } = await authorizationCode(sandbox, scope);
  const form = { grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: REDIRECT };
  return (await (await postForm(sandbox, "token", form)).json()) as Tokens;
}

/** Calls X API v2. */
export function callX(sandbox: Sandbox, path: string, access: string, body?: unknown): Promise<Response> {
  return fetch(`${sandbox.urls.xApi}/2${path}`, {
    headers: { authorization: `Bearer ${access}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
}

export function postJson(url: string, body: unknown): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

export function personId(sandbox: Sandbox, username: string): string {
  return [...sandbox.x.people.values()].find((person) => person.username === username)?.id ?? "";
}
