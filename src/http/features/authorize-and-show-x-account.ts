import { Type, type Static } from "@sinclair/typebox";
import { linkAccount, STATE_TTL_MS, type Linked } from "../../account/link-and-unlink-account.ts";
import { OAuthError, type Authorization } from "../../account/oauth.ts";
import type { EventMetadata } from "../../log/event-log.ts";
import { formatDuration } from "../../platform/format-numbers-and-lists.ts";
import { feature, type AccountParts, type HttpContext } from "../http-context.ts";
import { isBack } from "../server/form-routes.ts";
import { json, redirect, whole } from "../server/http-response.ts";
import { route, reply, textReply } from "../server/endpoint.ts";
import { AUTHORIZE_AGAIN, toProblem, problems, type Problem } from "../server/problem.ts";
import { text } from "../../platform/common-schemas.ts";

interface LinkingAccount extends AccountParts {
  /**
   * OAuth callbacks (X's redirects back to this service) in progress, by their query. If the browser sends one twice,
   * both requests get the same result.
   */
  readonly underway: Map<string, Promise<Linked | undefined>>;
}

const CONSOLE_PATH = "/";

/** Headers of the OAuth flow's responses, so that no cache keeps them, and no other site learns their address. */
const CLOSED_PAGE = { "cache-control": "no-store", "referrer-policy": "no-referrer" };

const user = Type.Object({ id: text("1786543210987654321"), username: text("acme_team"), name: text("Acme") });

const linkedUser = Type.Object({ ...user.properties, scopes: Type.Array(text("dm.write")) });

/**
 * Query parameter that marks a request which was redirected to PUBLIC_URL. The service does not redirect it again, because behind
 * a proxy that changes the host name that would never end.
 */
const LED = "led";

export function accountEndpoints(context: HttpContext) {
  const { account: parts, config } = context;
  const account: LinkingAccount | undefined = parts && { ...parts, underway: new Map() };
  return feature("account", "/social")
    .get(
      "/auth",
      async ({ request }) => {
        const { oauth, cookie } = configured(account);
        const publicUrl = new URL(config.http.publicUrl);
        const { searchParams } = new URL(request.url);
        const wanted = searchParams.get("back") ?? "";
        const back = isBack(wanted) ? { back: wanted } : {};
        // X will redirect to PUBLIC_URL, and the browser would not send a cookie of another host name there. So a
        // browser that used another name is sent to PUBLIC_URL first.
        if (!searchParams.has(LED) && request.headers.get("host")?.toLowerCase() !== publicUrl.host) {
          const query = new URLSearchParams({ [LED]: "1", ...back });
          return whole(redirect(303, `${config.http.publicUrl}/social/auth?${query}`, CLOSED_PAGE));
        }
        const { url, ...authorization } = await oauth.begin();
        return whole(redirect(302, url, { "set-cookie": cookie.give({ ...authorization, ...back }), ...CLOSED_PAGE }));
      },
      route("startAuthorization", "outreach", "open", {
        response: {
          302: textReply("Redirect to X.", { headers: ["location", "set-cookie"] }),
          303: textReply("Requested under another host name: redirect to PUBLIC_URL.", { headers: ["location"] }),
        },
        summary: "Sends the browser to X, to authorize an account.",
        description: "Starts the PKCE flow of OAuth 2.0. The browser gets a cookie, which the callback requires.",
        query: {
          led: "`1`: begins under the requested host name, without a redirect to PUBLIC_URL.",
          back: "Page of the console to which the browser returns after the authorization. Default: the overview.",
        },
        problems: ["xNotConfigured"],
      }),
    )
    .get(
      "/callback",
      ({ request, call }) => {
        // X's redirect carries the browser's session, so the event names the operator who is signed in there.
        const operator = context.sessions.tokenOf(request);
        const metadata = operator === undefined ? call.metadata : { ...call.metadata, caller: operator.name };
        return finishAuthorization(context, configured(account), request, metadata);
      },
      route("finishAuthorization", "outreach", "open", {
        response: {
          200: reply("Authorized; the answer to a caller that accepts JSON.", linkedUser),
          303: textReply("Authorized; redirect to the console.", { headers: ["location", "set-cookie"] }),
        },
        summary: "Finishes an authorization; X redirects the browser here.",
        description: `Exchanges the code for tokens, which are stored encrypted. A state is valid once, for ${formatDuration(STATE_TTL_MS / 1_000)}, in the browser that began.`,
        query: { state: "As it was given to X.", code: "From X.", error: "From X, when the person declined." },
        requestHeaders: ["Accept"],
        problems: [
          "authorizationFailed",
          "notAuthorized",
          "wrongAccount",
          "networkFailed",
          "xNotConfigured",
          "logInDoubt",
        ],
        isSlow: true,
      }),
    )
    .get(
      "/me",
      async () => {
        if (account === undefined || !context.projector.state("account").authorized) throw problems.notAuthorized();
        const { tokens, network } = account;
        const { id, username, name } = await tokens.use((token) => network.me(token));
        return { id, username, name };
      },
      route("getAuthorizedAccount", "outreach", ["strict", "read"], {
        response: { 200: reply("The account.", user) },
        personalRead: false,
        summary: "The authorized X account, as X reports it now.",
        description: "Proves that the authorization still works.",
        problems: ["notAuthorized", "networkFailed"],
        isSlow: true,
      }),
    );
}

function configured(account: LinkingAccount | undefined): LinkingAccount {
  if (account === undefined) throw problems.xNotConfigured();
  return account;
}

async function finishAuthorization(
  context: HttpContext,
  account: LinkingAccount,
  request: Request,
  metadata: EventMetadata,
) {
  const given = new URL(request.url).searchParams;
  const begun = account.cookie.read(request);
  if (begun === undefined) throw refused("notBegun", CLOSED_PAGE);
  // The cookie is kept. Another site may have sent the browser here, and must not end the authorization that the
  // operator began.
  if (given.get("state") !== begun.state) throw refused("otherState", CLOSED_PAGE);
  const headers = { ...CLOSED_PAGE, "set-cookie": account.cookie.cleared };
  const linked = await linkOnce(context, account, given, begun, metadata).catch((fault: unknown) => {
    throw callbackFault(fault, headers);
  });
  if (linked === undefined) throw refused("usedState", headers);
  if (linked.kind === "wrong_account") throw problems.wrongAccount().with(headers);
  const wantsJson = request.headers.get("accept")?.includes("application/json") ?? false;
  if (!wantsJson) return whole(redirect(303, begun.back ?? CONSOLE_PATH, headers));
  return whole<200, Static<typeof linkedUser>>(json(200, { ...linked.user, scopes: linked.scopes }, headers));
}

function linkOnce(
  context: HttpContext,
  account: LinkingAccount,
  given: URLSearchParams,
  begun: Authorization,
  metadata: EventMetadata,
) {
  const { underway } = account;
  const key = given.toString();
  const linking =
    underway.get(key) ?? link(context, account, given, begun, metadata).finally(() => underway.delete(key));
  underway.set(key, linking);
  return linking;
}

/**
 * Links the X account that the redirect from X authorizes. Undefined if the redirect's state was used before, unless
 * this same redirect linked the present account.
 */
async function link(
  context: HttpContext,
  account: LinkingAccount,
  given: URLSearchParams,
  begun: Authorization,
  metadata: EventMetadata,
) {
  if (!(await account.states.claim(begun.state))) return linkedBefore(context, account, given);
  const linked = await linkAccount(context, account, given, begun, metadata);
  if (linked.kind === "linked") await account.states.finish(given, linked.user.id);
  return linked;
}

/**
 * Returns the result of an earlier, identical redirect, for a browser that missed the response or sent the redirect
 * twice. Undefined if that redirect did not link the present account.
 */
async function linkedBefore(
  { projector, eventLog }: HttpContext,
  { states }: LinkingAccount,
  given: URLSearchParams,
): Promise<Linked | undefined> {
  // Another instance may just have linked the account by this redirect, so the projections first read the log to its
  // end.
  await projector.until((await eventLog.store.head()).position);
  const { user: linked, scopes, authorized } = projector.state("account");
  const isFinished = authorized && linked !== null && (await states.isFinished(given, linked.id));
  return isFinished ? { kind: "linked", user: linked, scopes } : undefined;
}

/** Reasons to refuse a redirect from X: `detail` for programs, in the terms of OAuth, and `words` for people. */
const REFUSALS = {
  notBegun: {
    detail: "This browser has no authorization in progress.",
    words: `This browser has no authorization in progress: it began more than ${formatDuration(STATE_TTL_MS / 1_000)} ago, in another browser, or is finished. Nothing was stored.`,
  },
  otherState: {
    detail: "The state does not match.",
    words: "This does not belong to the authorization that this browser began last. Nothing was stored.",
  },
  usedState: {
    detail: "This state was used before.",
    words: "This authorization was used before, and cannot be used twice. Nothing was stored now.",
  },
} as const;

function refused(why: keyof typeof REFUSALS, headers: Record<string, string>): Problem {
  const { detail, words } = REFUSALS[why];
  return problems.authorizationFailed(detail).with(headers, { words });
}

/** OAuth error code that X sends if the operator declined the authorization. */
const DECLINED = "access_denied";

function callbackFault(fault: unknown, headers: Record<string, string>): unknown {
  if (fault instanceof OAuthError && fault.kind === "rejected") {
    const words = `${fault.message === DECLINED ? "You cancelled at X." : "X refused the authorization."} Nothing was stored.`;
    return problems.authorizationFailed(`The network answered: ${fault.message}.`).with(headers, { words });
  }
  return toProblem(fault)?.with(headers, { nextStep: AUTHORIZE_AGAIN }) ?? fault;
}
