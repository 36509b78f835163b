import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { isJson, isRecord, jsonOf } from "../request.ts";
import { invalidRequest, notPermitted, refuseId, xProblem } from "./answers.ts";
import { guarded } from "./guard.ts";
import { bill, findById, type DirectMessage, type Grant, type XState } from "./state.ts";

/** The specification requires the first; the guide says that it requires `dm.read` as well. */
const SCOPES = ["dm.write", "dm.read", "tweet.read", "users.read"];

/** https://developer.x.com/en/docs/x-api/direct-messages/manage/api-reference */
const TEXT_CHARS_MAX = 10_000;

/** Handles requests to send a direct message. */
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
  const malformed = refuseId("participant_id", participant);
  if (malformed !== undefined) return malformed;
  if (!isJson(request)) return xProblem(415, "Unsupported Media Type", "Content-Type wants application/json");
  const text = textOf(await jsonOf(request));
  if (text === undefined)
    return invalidRequest(`The body wants \`text\` of 1 to ${TEXT_CHARS_MAX} characters, no more`);
  const recipient = findById(state, participant);
  const takesIt = recipient !== undefined && recipient.receives_your_dm !== false && !recipient.closed_when_sent;
  if (!takesIt || participant === grant.userId) {
    return xProblem(403, "Forbidden", "You do not have permission to DM one or more participants.");
  }
  if (recipient.not_permitted === true) return notPermitted();
  const message = deliver(state, grant.userId, participant, text);
  bill(state, { sends: 1 });
  state.accepted.set(participant, (state.accepted.get(participant) ?? 0) + 1);
  const data = { dm_conversation_id: conversationOf(message), dm_event_id: message.id };
  return HttpResponse.json({ data }, { status: 201 });
}

/** The text of a body. X refuses other members except attachments, which the sandbox does not support. */
function textOf(body: unknown): string | undefined {
  if (!isRecord(body) || Object.keys(body).some((key) => key !== "text")) return undefined;
  const { text } = body;
  return typeof text === "string" && text.trim() !== "" && text.length <= TEXT_CHARS_MAX ? text : undefined;
}

/** X shows messages of the last 30 days. */
const SHOWN_MS = 30 * 24 * 3_600_000;

const FIRST_ID = 1_800_000_000_000_000_000n;

/** Adds a message to the conversation; X does not de-duplicate. */
export function deliver(state: XState, sender_id: string, recipient_id: string, text: string): DirectMessage {
  const message: DirectMessage = {
    id: String(FIRST_ID + BigInt(state.messages.total)),
    sender_id,
    recipient_id,
    text,
    created_at: state.clock.now(),
  };
  state.messages.add(message);
  return message;
}

/** The messages that `own` can see, newest first: of one conversation, or of all. */
export function visibleTo({ messages, clock, limits }: XState, own: string, participant?: string): DirectMessage[] {
  const now = clock.now();
  // Networks commit late, so a new message is not visible yet.
  const isShown = ({ created_at }: DirectMessage): boolean =>
    created_at + limits.lateCommitMs <= now && now - created_at < SHOWN_MS;
  return messages.kept.filter((message) => isShown(message) && isBetween(message, own, participant)).toReversed();
}

function isBetween({ sender_id, recipient_id }: DirectMessage, own: string, participant?: string): boolean {
  if (sender_id !== own && recipient_id !== own) return false;
  return participant === undefined || sender_id === participant || recipient_id === participant;
}

/** The conversation's id, with the smaller id first. */
export function conversationOf({ sender_id, recipient_id }: DirectMessage): string {
  const [low, high] = BigInt(sender_id) < BigInt(recipient_id) ? [sender_id, recipient_id] : [recipient_id, sender_id];
  return `${low}-${high}`;
}
