import { http, HttpResponse } from "msw";
import { pageAnswer } from "../html.tsx";
import { ORIGINS } from "../network-origins-and-refusals.ts";
import { consentPage, sorryPage } from "./consent-page.tsx";
import { findById, type XState } from "./state.ts";
import { secret } from "./tokens.ts";

/** Lifetime of an authorization code: https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code */
const CODE_LIFETIME_MS = 30_000;
const STATE_CHARS_MAX = 500;

/** OAuth scope -> its permission in the words of the consent page. */
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

/** Handles requests for the consent page, and its submitted form. */
export function consentHandlers(state: XState) {
  return [
    http.get(PATH, ({ request }) => {
      const parameters = new URL(request.url).searchParams;
      return refuse(state, parameters) ?? ask(state, parameters);
    }),
    http.post(PATH, async ({ request }) => {
      const form = new URLSearchParams(await request.text());
      return refuse(state, form) ?? decide(state, form);
    }),
  ];
}

function ask(state: XState, parameters: URLSearchParams): Response {
  const accounts = [...state.people.values()].filter(({ can_authorize }) => can_authorize === true);
  const abilities = (parameters.get("scope") ?? "").split(" ").map((scope) => SCOPES[scope] ?? "");
  // The form redirects to the app, at any address.
  return pageAnswer(consentPage({ parameters, accounts, abilities }));
}

/**
 * Refuses an invalid request for authorization; undefined if it is valid. Shows a page if the redirect address cannot
 * be trusted, otherwise redirects there with the error.
 */
function refuse(state: XState, parameters: URLSearchParams): Response | undefined {
  const trusted = parameters.get("client_id") === state.clientId && isRegistered(state, parameters.get("redirect_uri"));
  if (!trusted) return pageAnswer(sorryPage(), { status: 400 });
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
