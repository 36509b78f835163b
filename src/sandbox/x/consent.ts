import { http, HttpResponse } from "msw";
import { escapeHtml, htmlPage } from "../html.ts";
import { ORIGINS } from "../network.ts";
import { secret } from "./oauth.ts";
import type { XState } from "./state.ts";

/** X: an authorization code lives 30 seconds. */
const CODE_LIFETIME_MS = 30_000;

const SCOPES = new Set([
  "tweet.read",
  "tweet.write",
  "users.read",
  "follows.read",
  "list.read",
  "dm.read",
  "dm.write",
  "offline.access",
]);

const PATH = `${ORIGINS["x-web"]}/i/oauth2/authorize`;

/** The consent page that a person sees and clicks. */
export function consentHandlers(state: XState) {
  return [
    http.get(PATH, ({ request }) => {
      const parameters = new URL(request.url).searchParams;
      return refuse(state, parameters) ?? page(200, "Authorize", consentForm(state, parameters));
    }),
    http.post(PATH, async ({ request }) => {
      const form = new URLSearchParams(await request.text());
      return refuse(state, form) ?? decide(state, form);
    }),
  ];
}

/** A request that cannot be trusted gets a page; one that can, but asks for the wrong thing, is sent back. */
function refuse(state: XState, parameters: URLSearchParams) {
  const redirectUri = parameters.get("redirect_uri") ?? "";
  const trusted = parameters.get("client_id") === state.clientId && isRegistered(redirectUri);
  if (!trusted) {
    const sorry = "<p>You weren't able to give access to the App. Go back and try logging in again.</p>";
    return page(400, "Something went wrong", `<div class="card"><h1>Something went wrong</h1>${sorry}</div>`);
  }
  if (parameters.get("response_type") !== "code") return back(parameters, { error: "unsupported_response_type" });
  const scopes = (parameters.get("scope") ?? "").split(" ");
  if (!scopes.every((scope) => SCOPES.has(scope))) return back(parameters, { error: "invalid_scope" });
  const hasChallenge = /^[\w~.-]{43}$/.test(parameters.get("code_challenge") ?? "");
  const isS256 = parameters.get("code_challenge_method") === "S256";
  const { length } = parameters.get("state") ?? "";
  if (!hasChallenge || !isS256 || length < 1 || length > 500) return back(parameters, { error: "invalid_request" });
  return undefined;
}

/** The sandbox's app is registered for the callback of any service on this machine. */
function isRegistered(redirectUri: string): boolean {
  if (!URL.canParse(redirectUri)) return false;
  const { hostname, pathname, hash } = new URL(redirectUri);
  return /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname) && pathname === "/social/callback" && hash === "";
}

function decide(state: XState, form: URLSearchParams) {
  const person = state.people.get(form.get("account") ?? "");
  if (form.get("decision") !== "authorize") return back(form, { error: "access_denied" });
  if (person?.can_authorize !== true) return back(form, { error: "access_denied" });
  const code = secret();
  state.codes.set(code, {
    userId: person.id,
    scopes: (form.get("scope") ?? "").split(" "),
    redirectUri: form.get("redirect_uri") ?? "",
    challenge: form.get("code_challenge") ?? "",
    expiresAt: state.clock.now() + CODE_LIFETIME_MS,
  });
  return back(form, { code });
}

function back(parameters: URLSearchParams, answer: Record<string, string>) {
  const url = new URL(parameters.get("redirect_uri") ?? "");
  url.searchParams.set("state", parameters.get("state") ?? "");
  for (const [name, value] of Object.entries(answer)) url.searchParams.set(name, value);
  return new HttpResponse(null, { status: 302, headers: { location: url.href } });
}

function consentForm(state: XState, parameters: URLSearchParams): string {
  const hidden = [...parameters].map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  );
  const accounts = [...state.people.values()]
    .filter((person) => person.can_authorize)
    .map(
      ({ id, username, name }, at) =>
        `<label><input type="radio" name="account" value="${id}"${at === 0 ? " checked" : ""}> ${escapeHtml(name)} (@${escapeHtml(username)})</label>`,
    );
  const scopes = (parameters.get("scope") ?? "").split(" ").map((scope) => `<li>${escapeHtml(scope)}</li>`);
  return `<div class="card"><h1>Sandbox app wants to access your X account</h1>
<form method="post" action="?">${hidden.join("")}
<p>Log in as</p>${accounts.join("")}<p>It asks for</p><ul>${scopes.join("")}</ul>
<button name="decision" value="authorize">Authorize app</button>
<button name="decision" value="cancel">Cancel</button></form></div>`;
}

function page(status: number, title: string, body: string) {
  return HttpResponse.html(htmlPage(title, body), { status });
}
