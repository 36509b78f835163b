import { http, HttpResponse } from "msw";
import { escapeHtml, htmlPage } from "../html.ts";
import { ORIGINS } from "../network.ts";
import type { Person } from "./people.ts";
import { findById, type XState } from "./state.ts";
import { secret } from "./tokens.ts";

/** https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code */
const CODE_LIFETIME_MS = 30_000;
const STATE_CHARS_MAX = 500;

/** What each scope lets the app do, as the consent page shows it. */
const SCOPES: Readonly<Record<string, string>> = {
  "tweet.read": "See posts, also of protected accounts you can view",
  "tweet.write": "Post for you",
  "users.read": "See any account you can view",
  "follows.read": "See whom you follow and who follows you",
  "list.read": "See lists, also your private ones",
  "dm.read": "Read your direct messages",
  "dm.write": "Send direct messages for you",
  "offline.access": "Stay connected until you revoke it",
};

const PATH = `${ORIGINS["x-web"]}/i/oauth2/authorize`;

/** The page on which a person consents, and what comes of it. */
export function consentHandlers(state: XState) {
  return [
    http.get(PATH, ({ request }) => {
      const parameters = new URL(request.url).searchParams;
      return refuse(state, parameters) ?? HttpResponse.html(consentPage(state, parameters));
    }),
    http.post(PATH, async ({ request }) => {
      const form = new URLSearchParams(await request.text());
      return refuse(state, form) ?? decide(state, form);
    }),
  ];
}

/** Where the redirect cannot be trusted a page says so; else the browser goes back with the error. */
function refuse(state: XState, parameters: URLSearchParams): Response | undefined {
  const trusted = parameters.get("client_id") === state.clientId && isRegistered(state, parameters.get("redirect_uri"));
  if (!trusted) return HttpResponse.html(sorryPage(), { status: 400 });
  if (parameters.get("response_type") !== "code") return back(parameters, { error: "unsupported_response_type" });
  const scopes = (parameters.get("scope") ?? "").split(" ");
  if (!scopes.every((scope) => Object.hasOwn(SCOPES, scope))) return back(parameters, { error: "invalid_scope" });
  const hasChallenge = /^[\w-]{43}$/.test(parameters.get("code_challenge") ?? "");
  const isS256 = parameters.get("code_challenge_method") === "S256";
  const { length } = parameters.get("state") ?? "";
  const hasState = length >= 1 && length <= STATE_CHARS_MAX;
  return hasChallenge && isS256 && hasState ? undefined : back(parameters, { error: "invalid_request" });
}

function isRegistered({ app: { redirectUris } }: XState, redirectUri: string | null): boolean {
  if (redirectUri === null || !URL.canParse(redirectUri)) return false;
  if (redirectUris !== undefined) return redirectUris.includes(redirectUri);
  return /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?\/social\/callback$/.test(redirectUri);
}

function decide(state: XState, form: URLSearchParams): Response {
  const person = findById(state, form.get("account") ?? "");
  const agreed = form.get("decision") === "authorize" && person?.can_authorize === true;
  if (!agreed) return back(form, { error: "access_denied" });
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

function back(parameters: URLSearchParams, answer: Readonly<Record<string, string>>): Response {
  const url = new URL(parameters.get("redirect_uri") ?? "");
  url.searchParams.set("state", parameters.get("state") ?? "");
  for (const [name, value] of Object.entries(answer)) url.searchParams.set(name, value);
  return new HttpResponse(null, { status: 302, headers: { location: url.href } });
}

/** The app's name as it is registered. */
const APP_NAME = "reachlog (sandbox)";

/** What a person sees and clicks. Everything that was asked for comes back with the form. */
function consentPage(state: XState, parameters: URLSearchParams): string {
  const hidden = [...parameters].map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  );
  const accounts = [...state.people.values()].filter(({ can_authorize }) => can_authorize === true);
  const scopes = (parameters.get("scope") ?? "")
    .split(" ")
    .map((scope) => `<li>${escapeHtml(SCOPES[scope] ?? "")}</li>`);
  return htmlPage(
    "Authorize app",
    `<div class="card"><h1>${escapeHtml(APP_NAME)} wants to access your X account</h1>
<form method="post" action="?">${hidden.join("")}
<p>As</p>${accounts.map(accountChoice).join("")}
<p>The app will be able to</p><ul>${scopes.join("")}</ul>
<button name="decision" value="authorize">Authorize app</button>
<button name="decision" value="cancel">Cancel</button></form></div>`,
  );
}

function accountChoice({ id, username, name }: Person, position: number): string {
  const checked = position === 0 ? " checked" : "";
  const shown = `${escapeHtml(name)} (@${escapeHtml(username)})`;
  return `<label><input type="radio" name="account" value="${escapeHtml(id)}"${checked}> ${shown}</label>`;
}

/** X's words for a client or a redirect that it does not know. */
function sorryPage(): string {
  return htmlPage(
    "Something went wrong",
    `<div class="card"><h1>Something went wrong</h1>
<p>You weren't able to give access to the App. Go back and try logging in again.</p></div>`,
  );
}
