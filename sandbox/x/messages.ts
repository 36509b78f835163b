import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network-origins-and-refusals.ts";
import { isJson, isRecord, jsonOf } from "../read-request.ts";
import { invalidRequest, notPermitted, refuseId, xProblem } from "./error-answers.ts";
import { signalReceived } from "./activity-subscriptions-and-stream.ts";
import { guarded } from "./check-token-scopes-and-limits.ts";
import { bill, findById, type DirectMessage, type Grant, type XState } from "./state.ts";

/** Scopes that sending a message requires. X's specification names all of them but `dm.read`, which X's guide adds. */
const SCOPES = ["dm.write", "dm.read", "tweet.read", "users.read"];

/** Maximum length of a message: https://developer.x.com/en/docs/x-api/direct-messages/manage/api-reference */
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

/**
 * Returns the text in a request's body; undefined if the body is invalid. X also accepts attachments, which the sandbox
 * does not support.
 */
function textOf(body: unknown): string | undefined {
  if (!isRecord(body) || Object.keys(body).some((key) => key !== "text")) return undefined;
  const { text } = body;
  return typeof text === "string" && text.trim() !== "" && text.length <= TEXT_CHARS_MAX ? text : undefined;
}

/** Age up to which X shows messages, in ms. */
const SHOWN_MS = 30 * 24 * 3_600_000;

const FIRST_ID = 1_800_000_000_000_000_000n;

/** Adds a message to its conversation. A repeated request adds another message, as in X. */
export function deliver(state: XState, sender_id: string, recipient_id: string, text: string): DirectMessage {
  const message: DirectMessage = {
    id: String(FIRST_ID + BigInt(state.messages.total)),
    sender_id,
    recipient_id,
    text,
    created_at: state.clock.now(),
  };
  state.messages.add(message);
  signalReceived(state, message);
  return message;
}

/** Returns the messages that the account `own` can see, newest first: those with one participant, or all. */
export function visibleTo({ messages, clock, limits }: XState, own: string, participant?: string): DirectMessage[] {
  const now = clock.now();
  // Networks commit late, so a message that was just accepted is not visible yet.
  const isShown = ({ created_at }: DirectMessage): boolean =>
    created_at + limits.lateCommitMs <= now && now - created_at < SHOWN_MS;
  return messages.kept.filter((message) => isShown(message) && isBetween(message, own, participant)).toReversed();
}

function isBetween({ sender_id, recipient_id }: DirectMessage, own: string, participant?: string): boolean {
  if (sender_id !== own && recipient_id !== own) return false;
  return participant === undefined || sender_id === participant || recipient_id === participant;
}

/** Returns the id of the message's conversation: both people's ids, the smaller one first. */
export function conversationOf({ sender_id, recipient_id }: DirectMessage): string {
  const [low, high] = BigInt(sender_id) < BigInt(recipient_id) ? [sender_id, recipient_id] : [recipient_id, sender_id];
  return `${low}-${high}`;
}
