import { Type } from "@sinclair/typebox";
import { redirect } from "./answer.ts";
import { formBody } from "./body.ts";
import { checkFormToken, commonFields, type FormDeps } from "./console-form.ts";
import { post } from "./endpoint.ts";
import { closed } from "./schema.ts";

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
