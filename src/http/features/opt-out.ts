import { Type } from "@sinclair/typebox";
import { normalizeCode } from "../../../projections/normalize-link.ts";
import { OPT_OUT_PATH } from "../../config/outreach.ts";
import { denyTrackingByPage, findOptOutPage, optOut } from "../../recipients/opt-out-and-untrack-by-page.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { whole } from "../server/http-response.ts";
import { formBody } from "../server/body.ts";
import { route, textReply } from "../server/endpoint.ts";
import { repeatable } from "../server/problem.ts";
import { optOutAnswer } from "./opt-out-answer.tsx";

/**
 * Body that the page's form posts. Without the field `do`, or without any body, the recipient wants no more messages.
 */
const body = formBody(
  Type.Object({
    do: Type.Optional(
      Type.Union([Type.Literal("stop"), Type.Literal("untrack")], {
        description: "`stop` (default): no more messages. `untrack`: no more clicks are recorded.",
      }),
    ),
  }),
);

const CODE = { code: "The code in the recipient's message." };
const page = (description: string) => textReply(description, { mediaType: "text/html" });
const UNKNOWN = page("No message has this code, or its recipient was forgotten.");

/**
 * Creates the page to opt out, to which `{{optout}}` in a message links. The code in its address is all that a
 * recipient needs.
 */
export function optOutEndpoints(context: HttpContext) {
  const found = (code: string) => findOptOutPage(context, normalizeCode(code));
  const unknown = (request: Request) => {
    const [stopWord = "stop"] = context.config.outreach.stopWords;
    return whole(optOutAnswer(request, { state: "unknown", stopWord }));
  };
  return feature("opt-out", OPT_OUT_PATH)
    .get(
      "/:code",
      async ({ params, call: { request } }) => {
        const known = await found(params.code);
        return known === undefined ? unknown(request) : whole(optOutAnswer(request, { state: "ask", ...known }));
      },
      route("showOptOutPage", "outreach", "open", {
        response: { 200: page("Who writes, and a button."), 404: UNKNOWN },
        summary: "Shows a recipient their page to opt out, in their browser's language.",
        description: "Changes nothing, however often it is requested. No cookie, no script.",
        parameters: CODE,
        problems: ["notFound"],
        refusalPage: (_problem, request) => optOutAnswer(request, { state: "wait" }),
      }),
    )
    .post(
      "/:code",
      async ({ params, body: { do: wish = "stop" }, call: { request, metadata } }) => {
        const known = await repeatable(found(params.code));
        if (known === undefined) return unknown(request);
        const record = wish === "stop" ? optOut : denyTrackingByPage;
        await repeatable(record(context, known.id, metadata));
        return whole(optOutAnswer(request, { state: wish === "stop" ? "stopped" : "untracked", ...known }));
      },
      route("optOut", "outreach", "open", {
        body,
        response: { 200: page("It is recorded, and holds from now on."), 404: UNKNOWN },
        summary: "Suppresses the recipient of a message, or revokes their consent to tracking, at their own wish.",
        description:
          "The code is the right to do so: no token, no cookie, and a form on any site may post it. After the answer no message to them is sent, even by a run in progress. A repeat changes nothing. A browser gets a page for 503 too.",
        parameters: CODE,
        problems: ["notFound"],
        anyOrigin: true,
        // The answer waits until no message to the recipient is being sent.
        isSlow: true,
        refusalPage: (_problem, request) => optOutAnswer(request, { state: "wait" }),
      }),
    );
}
