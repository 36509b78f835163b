import { Type } from "@sinclair/typebox";
import { renderPage } from "../console/document.tsx";
import { signInPage } from "../console/sign-in.tsx";
import type { ApiToken } from "../config/tokens.ts";
import type { Clock } from "../platform/clock.ts";
import { html, redirect } from "./answer.ts";
import type { Authentication } from "./authentication.ts";
import { formBody } from "./body.ts";
import { createEncryptedCookie } from "./encrypted-cookie.ts";
import { post } from "./endpoint.ts";
import { problems } from "./problem.ts";
import type { RateLimit } from "./rate-limit.ts";
import { closed } from "./schema.ts";

/** Signs browsers in to the console with a token that is asked for once. */
export interface Sessions {
  /** The name of the cookie. */
  readonly cookie: string;
  /** True when this browser may see the console: signed in, or no token is configured at all. */
  admits(request: Request): boolean;
  /** The `Set-Cookie` value for a right token; undefined for a wrong one. */
  signIn(token: string): string | undefined;
}

const COOKIE = {
  name: "reachlog_session",
  keyName: "console-session",
  path: "/",
  lifetimeSeconds: 12 * 3600,
  sameSite: "strict",
} as const;

/** A session ends with the token that it was opened with. */
export function createSessions(
  masterKey: Uint8Array,
  authentication: Authentication,
  isSecure: boolean,
  clock: Clock,
): Sessions {
  const cookie = createEncryptedCookie<{ readonly token: ApiToken }>(COOKIE, masterKey, isSecure, clock);
  return {
    cookie: cookie.name,
    admits(request) {
      if (!authentication.guardsConsole) return true;
      const session = cookie.read(request);
      return session !== undefined && authentication.knows(session.token);
    },
    signIn(given) {
      const token = authentication.identify(given);
      return token === undefined ? undefined : cookie.give({ token });
    },
  };
}

export interface SignInDeps {
  readonly sessions: Sessions;
  readonly failureLimit: RateLimit;
}

export const signIn = post({
  id: "signIn",
  tag: "service",
  summary: "Signs a browser in to the console.",
  description: "Takes a token from the console's form, and keeps it in a cookie of this browser.",
  body: formBody(Type.Object({ token: Type.String({ maxLength: 1024, examples: ["not-a-token"] }) }, closed)),
  answers: {
    303: { says: "Signed in.", headers: ["location", "set-cookie"] },
    401: { says: "The page that asks for a token, again.", mediaType: "text/html" },
  },
  problems: [],
  handle({ sessions, failureLimit }: SignInDeps, { body, addressOf }) {
    const cookie = sessions.signIn(body.token);
    if (cookie !== undefined) return redirect(303, "/", { "set-cookie": cookie });
    const wait = failureLimit.check(addressOf());
    if (wait !== undefined) throw problems.tooMany(wait);
    failureLimit.take(addressOf());
    return html(401, renderPage(signInPage(true)));
  },
});
