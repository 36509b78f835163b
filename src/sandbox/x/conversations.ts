import { http } from "msw";
import { ORIGINS } from "../network.ts";
import { invalidParameter, invalidRequest } from "./answers.ts";
import { bill } from "./billing.ts";
import { guarded } from "./guard.ts";
import { asShown } from "./links.ts";
import { conversationOf, visibleTo } from "./mailbox.ts";
import { paged } from "./page.ts";
import { choicesOf } from "./query.ts";
import { findById, type DirectMessage, type Grant, type XState } from "./state.ts";
import { readUserFields, shownUser } from "./user-fields.ts";

const SCOPES = ["dm.read", "tweet.read", "users.read"];

/** As in X's specification since 2026-08: `sender_id` and `participant_ids` are no fields any more. */
const EVENT_FIELDS = [
  "attachments",
  "created_at",
  "dm_conversation_id",
  "entities",
  "event_type",
  "id",
  "referenced_posts",
  "text",
];
const DEFAULT_FIELDS = ["id", "event_type", "text"];
const EVENT_TYPES = ["MessageCreate", "ParticipantsJoin", "ParticipantsLeave"];
const EXPANSIONS = [
  "attachments.media_keys",
  "participant_ids",
  "referenced_posts",
  "referenced_posts.id",
  "sender_id",
];

/** Reading one conversation, or all of them. */
export function conversationHandlers(state: XState) {
  const handler = (path: string) =>
    http.get(`${ORIGINS.x}/2/${path}`, ({ request, params }) => {
      const terms = { endpoint: "dm events", scopes: SCOPES, limit: state.limits.dmReadLimit };
      const participant = params["participant"];
      return guarded(state, request, terms, (grant) =>
        read(state, grant, request, participant === undefined ? undefined : String(participant)),
      );
    });
  return [handler("dm_conversations/with/:participant/dm_events"), handler("dm_events")];
}

function read(state: XState, { userId }: Grant, request: Request, participant: string | undefined): Response {
  if (participant !== undefined && !/^\d{1,19}$/.test(participant)) {
    return invalidRequest("The `participant_id` path parameter value does not match ^[0-9]{1,19}$");
  }
  const url = new URL(request.url);
  const query = url.searchParams;
  const choices = {
    fields: choicesOf(query, "dm_event.fields", EVENT_FIELDS),
    types: choicesOf(query, "event_types", EVENT_TYPES),
    expansions: choicesOf(query, "expansions", EXPANSIONS),
    userFields: readUserFields(query),
  };
  const unknown = Object.values(choices).find((choice) => choice.unknown !== undefined)?.unknown;
  if (unknown !== undefined) return invalidParameter(unknown.name, unknown.value, "is not one of the known values");
  const { fields, types, expansions, userFields } = choices;

  // Nobody joins or leaves here: everything is a message.
  const wantsMessages = types.values.length === 0 || types.values.includes("MessageCreate");
  const all = wantsMessages ? visibleTo(state, userId, participant) : [];
  const expandsSender = expansions.values.includes("sender_id");
  const listing = {
    url,
    now: state.clock.now(),
    all,
    size: { least: 1, most: 100, usual: 100 },
    tokens: "to_the_end",
  } as const;
  return paged(listing, (page) => {
    const senders = expandsSender ? sendersOf(state, page, userFields.values) : undefined;
    bill(state.billed, { messages: page.length, users: senders?.length ?? 0 });
    return {
      data: page.map((message) => shownEvent(message, [...DEFAULT_FIELDS, ...fields.values], expandsSender)),
      ...(senders === undefined ? {} : { includes: { users: senders } }),
    };
  });
}

function shownEvent(message: DirectMessage, fields: readonly string[], expandsSender: boolean) {
  const { text, urls } = asShown(message.id, message.text);
  const all: Record<string, unknown> = {
    id: message.id,
    event_type: "MessageCreate",
    text,
    created_at: new Date(message.created_at).toISOString(),
    dm_conversation_id: conversationOf(message),
    ...(urls.length > 0 ? { entities: { urls } } : {}),
    ...(expandsSender ? { sender_id: message.sender_id } : {}),
  };
  return Object.fromEntries(Object.entries(all).filter(([name]) => name === "sender_id" || fields.includes(name)));
}

function sendersOf(state: XState, page: readonly DirectMessage[], fields: readonly string[]) {
  const ids = new Set(page.map(({ sender_id }) => sender_id));
  return [...ids].flatMap((id) => findById(state, id) ?? []).map((person) => shownUser(person, fields));
}
