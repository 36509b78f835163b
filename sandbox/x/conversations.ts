import { http } from "msw";
import { ORIGINS } from "../network-origins-and-refusals.ts";
import { refuseId } from "./error-answers.ts";
import { shownUser, USER_FIELDS, withChoices } from "./requested-fields.ts";
import { guarded } from "./check-token-scopes-and-limits.ts";
import { conversationOf, visibleTo } from "./messages.ts";
import { paged } from "./paginate.ts";
import { bill, findAll, type DirectMessage, type Grant, type XState } from "./state.ts";

const SCOPES = ["dm.read", "tweet.read", "users.read"];

const DEFAULT_FIELDS = ["id", "event_type", "text"];

/**
 * Query parameter -> the values that it may have, as in X's specification since 2026-08. `sender_id` and
 * `participant_ids` are no longer fields there.
 */
const CHOICES = {
  "dm_event.fields": "attachments created_at dm_conversation_id entities event_type id referenced_posts text".split(
    " ",
  ),
  event_types: ["MessageCreate", "ParticipantsJoin", "ParticipantsLeave"],
  expansions: "attachments.media_keys participant_ids referenced_posts referenced_posts.id sender_id".split(" "),
};

/** Handles requests for the messages of one conversation, or of all. */
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
  const malformed = participant === undefined ? undefined : refuseId("participant_id", participant);
  if (malformed !== undefined) return malformed;
  return withChoices(request, { ...CHOICES, ...USER_FIELDS }, (chosen) => {
    // No member joins or leaves here, so each event is a message.
    const { event_types: types, "dm_event.fields": fields } = chosen;
    const wantsMessages = types.length === 0 || types.includes("MessageCreate");
    const expandsSender = chosen.expansions.includes("sender_id");
    const listing = {
      url: new URL(request.url),
      now: state.clock.now(),
      all: wantsMessages ? visibleTo(state, userId, participant) : [],
      size: { least: 1, most: 100, usual: 100 },
      tokens: "to_the_end",
    } as const;
    return paged(listing, (page) => {
      const people = expandsSender
        ? findAll(
            state,
            page.map(({ sender_id }) => sender_id),
          )
        : undefined;
      const senders = people?.map((person) => shownUser(person, chosen["user.fields"]));
      bill(state, { messages: page.length, users: senders?.length ?? 0 });
      return {
        data: page.map((message) => shownEvent(message, [...DEFAULT_FIELDS, ...fields], expandsSender)),
        ...(senders === undefined ? {} : { includes: { users: senders } }),
      };
    });
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

interface WrappedUrl {
  readonly start: number;
  readonly end: number;
  readonly url: string;
  readonly expanded_url: string;
  readonly display_url: string;
}

/**
 * Matches a link: one with a scheme, or a bare domain name that X makes a link of. The sandbox knows only a few
 * top-level domains.
 */
const LINK = /https?:\/\/[^\s<>]+|(?<![@\w./-])(?:[\w-]+\.)+(?:com|net|org|io|dev|app|co|shop)\b(?:\/[^\s<>]*)?/gi;

/** Matches punctuation after a link, which X does not count as a part of the link. */
const SENTENCE_END = /[.,;:!?'")\]]+$/;

const SHORT_CHARS = 10;
const DISPLAYED_CHARS = 26;

/** Converts a message's text as X does: replaces each link by a short one, and escapes `&`, `<` and `>` as in HTML. */
function asShown(messageId: string, text: string): { text: string; urls: WrappedUrl[] } {
  const urls: WrappedUrl[] = [];
  let shown = "";
  let from = 0;
  for (const { 0: match, index } of text.matchAll(LINK)) {
    const link = match.replace(SENTENCE_END, "");
    shown += escaped(text.slice(from, index));
    const url = shortened(messageId, urls.length);
    urls.push({ start: shown.length, end: shown.length + url.length, url, ...originalOf(link) });
    shown += url;
    from = index + link.length;
  }
  return { text: shown + escaped(text.slice(from)), urls };
}

function originalOf(link: string) {
  const expanded_url = /^https?:/i.test(link) ? link : `http://${link}`;
  const display_url = link.replace(/^https?:\/\/(?:www\.)?/i, "");
  const isLong = display_url.length > DISPLAYED_CHARS;
  return { expanded_url, display_url: isLong ? `${display_url.slice(0, DISPLAYED_CHARS)}…` : display_url };
}

/** Returns X's short link for a link in a message. It differs for each link of each message, but not between reads. */
function shortened(messageId: string, position: number): string {
  const number = BigInt(messageId) * 1_000n + BigInt(position);
  return `https://t.co/${number.toString(36).slice(-SHORT_CHARS)}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
