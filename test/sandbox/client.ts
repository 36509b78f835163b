import { createHash, randomBytes } from "node:crypto";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";

export const REDIRECT = "http://127.0.0.1:9/social/callback";
export const ALL_SCOPES = "dm.write dm.read tweet.read users.read follows.read list.read offline.access";

const basic = ({ x }: Sandbox): string => `Basic ${Buffer.from(`${x.clientId}:${x.clientSecret}`).toString("base64")}`;

/** What a client of the sandbox's X does, with every value open to be spoiled. */
export async function authorizationCode(
  sandbox: Sandbox,
  scope = ALL_SCOPES,
): Promise<{ code: string; verifier: string }> {
  const verifier = randomBytes(32).toString("base64url");
  const form = new URLSearchParams({
    response_type: "code",
    client_id: sandbox.x.clientId,
    redirect_uri: REDIRECT,
    scope,
    state: "state",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    account: [...sandbox.x.people.keys()][0] ?? "",
    decision: "authorize",
  });
  const answer = await fetch(`${sandbox.url}/x-web/i/oauth2/authorize`, {
    method: "POST",
    body: form,
    redirect: "manual",
  });
  const code = new URL(answer.headers.get("location") ?? "").searchParams.get("code") ?? "";
  return { code, verifier };
}

export function token(
  sandbox: Sandbox,
  form: Record<string, string>,
  authorization = basic(sandbox),
): Promise<Response> {
  return fetch(`${sandbox.url}/x/2/oauth2/token`, {
    method: "POST",
    headers: { authorization },
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
  return (await (await token(sandbox, form)).json()) as Tokens;
}

/** A call of X API v2. */
export function callX(sandbox: Sandbox, path: string, access: string, body?: unknown): Promise<Response> {
  return fetch(`${sandbox.url}/x/2${path}`, {
    headers: { authorization: `Bearer ${access}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
}

export function personId(sandbox: Sandbox, username: string): string {
  return [...sandbox.x.people.values()].find((person) => person.username === username)?.id ?? "";
}
