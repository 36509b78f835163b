import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { invalidRequest, notPermitted, xProblem } from "./answers.ts";
import { bill } from "./billing.ts";
import { guarded } from "./guard.ts";
import { conversationOf, deliver } from "./mailbox.ts";
import { findById, type Grant, type XState } from "./state.ts";

/** The specification wants the first; the guide says that `dm.read` is required with it. */
const SCOPES = ["dm.write", "dm.read", "tweet.read", "users.read"];

/** https://developer.x.com/en/docs/x-api/direct-messages/manage/api-reference */
const TEXT_CHARS_MAX = 10_000;

/** Sending a direct message. */
export function messageHandlers(state: XState) {
  return [
    http.post(`${ORIGINS.x}/2/dm_conversations/with/:participant/messages`, ({ request, params }) => {
      const { dmLimit: limit, dmDayLimit: dayLimit } = state.limits;
      return guarded(state, request, { endpoint: "send dm", scopes: SCOPES, limit, dayLimit }, (grant) =>
        send(state, grant, String(params["participant"]), request),
      );
    }),
  ];
}

async function send(state: XState, grant: Grant, participant: string, request: Request): Promise<Response> {
  if (!/^\d{1,19}$/.test(participant)) {
    return invalidRequest("The `participant_id` path parameter value does not match ^[0-9]{1,19}$");
  }
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? "")) {
    return xProblem(415, "Unsupported Media Type", "Content-Type wants application/json");
  }
  const text = textOf(await request.json().catch(() => undefined));
  if (text === undefined)
    return invalidRequest(`The body wants \`text\` of 1 to ${TEXT_CHARS_MAX} characters, no more`);
  const recipient = findById(state, participant);
  const takesIt = recipient !== undefined && recipient.receives_your_dm !== false && !recipient.closed_when_sent;
  if (!takesIt || participant === grant.userId) {
    return xProblem(403, "Forbidden", "You do not have permission to DM one or more participants.");
  }
  if (recipient.not_permitted === true) return notPermitted();
  const message = deliver(state, grant.userId, participant, text);
  bill(state.billed, { sends: 1 });
  state.accepted.set(participant, (state.accepted.get(participant) ?? 0) + 1);
  const data = { dm_conversation_id: conversationOf(message), dm_event_id: message.id };
  return HttpResponse.json({ data }, { status: 201 });
}

/** Anything beside `text` is refused by X, bar attachments, which nobody has uploaded here. */
function textOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null || Object.keys(body).some((key) => key !== "text")) return undefined;
  const { text } = body as { text?: unknown };
  return typeof text === "string" && text.trim() !== "" && text.length <= TEXT_CHARS_MAX ? text : undefined;
}
