import { Type, type Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { PageRequest, SentDm } from "../network.ts";
import { ID, META, parseNext, required, unreadable, USERNAME } from "./interpret-answer.ts";
import { FRAME_BYTES, clampPageSize, type XRead } from "./send-get-request.ts";

/** Range of `max_results` of X's reads of messages: https://docs.x.com/x-api/direct-messages/get-dm-events */
const MESSAGES = { least: 1, most: 100 };

/**
 * Maximum size of a message in X's JSON, in bytes: 10,000 characters outside of the first plane, each escaped as two of
 * `\uXXXX` (12 bytes), and the other fields.
 */
const MESSAGE_BYTES_MAX = 125_000;

/**
 * Maximum number of pages that one read of a conversation takes. X may filter by type after it has cut the page, so a
 * page may have few messages.
 */
const PAGES_MAX = 3;

/**
 * Fields of a message that both versions of X's specification know. X returns `sender_id` only if the request asks for
 * it as an expansion.
 */
const FIELDS = "id,event_type,text,created_at,dm_conversation_id";

const LINK = Type.Object({ url: Type.String({ minLength: 1 }), expanded_url: Type.Optional(Type.String()) });

/** Schema of the links in a message's text, which X shortens. */
export const ENTITIES = Type.Optional(Type.Object({ urls: Type.Optional(Type.Array(LINK)) }));

const DM_EVENT = Type.Object({
  id: ID,
  text: Type.Optional(Type.String()),
  created_at: Type.String(),
  sender_id: Type.Optional(ID),
  dm_conversation_id: Type.Optional(Type.String()),
  entities: ENTITIES,
});

type DmEvent = Static<typeof DM_EVENT>;

/** Schema of a page of messages from X. An empty page has no `data`. */
const EVENTS = Type.Object({
  data: Type.Optional(Type.Array(DM_EVENT)),
  errors: Type.Optional(Type.Array(Type.Unknown())),
  includes: Type.Optional(Type.Object({ users: Type.Optional(Type.Array(Type.Object({ id: ID }))) })),
  meta: Type.Optional(META),
});

const SENDER = Type.Object({ id: ID, username: USERNAME });

/**
 * Matches the id of a conversation of two, which consists of their ids. A conversation with another id may have several
 * people.
 */
const ONE_TO_ONE = /^\d+-\d+$/;

/**
 * Returns the newest messages of one conversation. Reads further pages if X returns fewer messages than requested and
 * says that there are more, because a missed message would count as absent.
 */
export async function fetchConversation(read: XRead, recipientId: string, limit: number): Promise<SentDm[]> {
  const path = `/2/dm_conversations/with/${recipientId}/dm_events`;
  const size = clampPageSize({ limit }, MESSAGES);
  const found: SentDm[] = [];
  let cursor: string | undefined;
  for (let page = 1; page <= PAGES_MAX; page++) {
    const left = size - found.length;
    const { events, senders, next } = await readEvents(read, path, `${FIELDS},entities`, left, cursor);
    // The answer lists the senders of its messages. If it lists only one, that user has sent them all.
    const onlySender = senders.length === 1 ? senders[0]?.id : undefined;
    found.push(...events.map((event) => toMessage(event, event.sender_id ?? onlySender)));
    if (found.length >= size || next === undefined) return found.slice(0, size);
    cursor = next;
  }
  throw unreadable();
}

/**
 * Returns a page of the messages of all conversations. It omits `entities`, because the links of a stranger's message
 * may be ten times its text.
 */
export async function fetchInbox(read: XRead, page: PageRequest) {
  const size = clampPageSize(page, MESSAGES);
  const { events, senders, ...more } = await readEvents(read, "/2/dm_events", FIELDS, size, page.cursor);
  const known = senders.filter((user) => Value.Check(SENDER, user));
  const usernames = new Map(known.map(({ id, username }) => [id, username]));
  const messages = events.map((event) => {
    const message = toMessage(event, event.sender_id);
    const inGroup = ONE_TO_ONE.test(event.dm_conversation_id ?? "") ? {} : { inGroup: true as const };
    return { ...message, senderUsername: usernames.get(message.senderId), ...inGroup };
  });
  return { messages, ...more };
}

/**
 * Reads one page of messages. A message that cannot be read for certain is an error: an absent message would count as
 * not delivered, and a missed reply may have been a wish to be left alone.
 */
async function readEvents(read: XRead, path: string, fields: string, size: number, cursor: string | undefined) {
  const query = {
    max_results: String(size),
    "dm_event.fields": fields,
    event_types: "MessageCreate",
    expansions: "sender_id",
    pagination_token: cursor,
  };
  const text = await read({ path, query, answerBytesMax: FRAME_BYTES + size * MESSAGE_BYTES_MAX });
  const { data: events, errors = [], includes, meta } = required(EVENTS, text);
  // The page counts as empty only if X says so. An error, or a count without the messages, leaves it open whether there
  // are any.
  const isEmpty = (meta?.result_count ?? events?.length) === 0 && errors.length === 0;
  if (!isEmpty && !events?.length) throw unreadable();
  return { events: events ?? [], senders: includes?.users ?? [], ...parseNext(meta) };
}

function toMessage(event: DmEvent, senderId: string | undefined): SentDm {
  const createdAt = Date.parse(event.created_at);
  if (senderId === undefined || Number.isNaN(createdAt)) throw unreadable();
  return { id: event.id, senderId, text: asWritten(event), createdAt };
}

/**
 * Returns a message's text as it was written: expands X's shortened links and its three HTML escapes. Takes one pass,
 * because thousands of links fit into a message.
 */
export function asWritten({
  text = "",
  entities,
}: {
  readonly text?: string;
  readonly entities?: DmEvent["entities"];
}): string {
  const originals = new Map((entities?.urls ?? []).map(({ url, expanded_url }) => [url, expanded_url ?? url]));
  return text
    .replace(/https?:\/\/t\.co\/[a-z\d]+/gi, (url) => originals.get(url) ?? url)
    .replace(/&(lt|gt|amp);/g, (_escape, name: "lt" | "gt" | "amp") => UNESCAPED[name]);
}

const UNESCAPED = { lt: "<", gt: ">", amp: "&" } as const;
