import { Type } from "@sinclair/typebox";
import { renderPage } from "../../console/document.tsx";
import { signInPage } from "../../console/sign-in.tsx";
import { html, redirect } from "../server/answer.ts";
import { formBody } from "../server/body.ts";
import { checkFormToken, commonFields, type FormDeps } from "./console-form.ts";
import { post } from "../server/endpoint.ts";
import type { FailureLimit } from "../access/failure-limit.ts";
import { problems } from "../server/problem.ts";
import { closed } from "./schema.ts";
import type { Sessions } from "../access/session.ts";

export interface SignInDeps {
  readonly sessions: Sessions;
  readonly failureLimit: FailureLimit;
}

export const signIn = post({
  id: "signIn",
  tag: "console",
  summary: "Signs a browser in to the console.",
  description: "Takes a token from the console's form, and keeps it in a cookie of this browser.",
  body: formBody(Type.Object({ token: Type.String({ maxLength: 1024, examples: ["not-a-token"] }) }, closed)),
  answers: {
    303: { says: "Signed in.", headers: ["location", "set-cookie"] },
    401: { says: "The page that asks for a token, again.", mediaType: "text/html" },
  },
  problems: [],
  async handle({ sessions, failureLimit }: SignInDeps, { body, addressOf }) {
    const cookie = sessions.signIn(body.token);
    if (cookie !== undefined) return redirect(303, "/", { "set-cookie": cookie });
    const wait = await failureLimit.fail(addressOf());
    if (wait !== undefined) throw problems.tooMany(wait);
    return html(401, renderPage(signInPage(true)));
  },
});

export const signOut = post({
  id: "signOut",
  tag: "console",
  summary: "Signs a browser out of the console.",
  description: "Takes the session's cookie from this browser, by the console's form.",
  body: formBody(Type.Pick(commonFields, ["form_token"], closed)),
  answers: { 303: { says: "Signed out.", headers: ["location", "set-cookie"] } },
  problems: ["unauthorized", "foreignSite"],
  handle(deps: FormDeps, { request, body }) {
    checkFormToken(deps, request, body.form_token);
    return redirect(303, "/", { "set-cookie": deps.sessions.signedOut });
  },
});
