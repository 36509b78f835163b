import { Type, type Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { InboxMessage, SentDm } from "./network.ts";
import { ID, META, nextOf, required, unreadable, USERNAME } from "./x-bodies.ts";

const DM_EVENT = Type.Object({
  id: ID,
  text: Type.Optional(Type.String()),
  created_at: Type.String(),
  sender_id: Type.Optional(ID),
  dm_conversation_id: Type.Optional(Type.String()),
  entities: Type.Optional(
    Type.Object({
      urls: Type.Optional(
        Type.Array(
          Type.Object({
            url: Type.String({ minLength: 1 }),
            expanded_url: Type.Optional(Type.String()),
          }),
        ),
      ),
    }),
  ),
});

/** An empty page has no `data`. */
const EVENTS = Type.Object({
  data: Type.Optional(Type.Array(DM_EVENT)),
  errors: Type.Optional(Type.Array(Type.Unknown())),
  includes: Type.Optional(Type.Object({ users: Type.Optional(Type.Array(Type.Object({ id: ID }))) })),
  meta: Type.Optional(META),
});

const SENDER = Type.Object({ id: ID, username: USERNAME });

/** A conversation of two is called by their ids; what X does not name may be one of several people. */
const ONE_TO_ONE = /^\d+-\d+$/;

export interface MessagePage<M> {
  readonly messages: readonly M[];
  readonly next?: string;
}

/**
 * Messages of one conversation. What cannot be read for certain is an error and not an absence: a message taken for
 * absent would count as not delivered, and a missed reply may have been a wish to be left alone.
 */
export function readConversation(text: string): MessagePage<SentDm> {
  const { data, includes, meta } = eventsIn(text);
  // By the expansion X lists the senders; if there is only one, it is the sender of all.
  const senders = includes?.users ?? [];
  const onlySender = senders.length === 1 ? senders[0]?.id : undefined;
  return pageOf(
    data.map((event) => messageOf(event, event.sender_id ?? onlySender)),
    meta,
  );
}

/** Messages of all conversations, read as strictly. */
export function readInbox(text: string): MessagePage<InboxMessage> {
  const { data, includes, meta } = eventsIn(text);
  const senders = (includes?.users ?? []).filter((user) => Value.Check(SENDER, user));
  const usernames = new Map(senders.map(({ id, username }) => [id, username]));
  return pageOf(
    data.map((event) => {
      const message = messageOf(event, event.sender_id);
      const inGroup = ONE_TO_ONE.test(event.dm_conversation_id ?? "") ? {} : { inGroup: true as const };
      return { ...message, senderUsername: usernames.get(message.senderId), ...inGroup };
    }),
    meta,
  );
}

/** Empty only where X says so: an error, or a count without the messages, leaves it open. */
function eventsIn(text: string) {
  const { data, errors = [], includes, meta } = required(EVENTS, text);
  const count = meta?.result_count ?? data?.length;
  const isKnown = (data ?? []).length > 0 || (count === 0 && errors.length === 0);
  if (!isKnown) throw unreadable();
  return { data: data ?? [], includes, meta };
}

function pageOf<M>(messages: readonly M[], meta: Static<typeof META> | undefined): MessagePage<M> {
  return { messages, ...nextOf(meta) };
}

function messageOf(event: Static<typeof DM_EVENT>, senderId: string | undefined): SentDm {
  const createdAt = Date.parse(event.created_at);
  if (senderId === undefined || Number.isNaN(createdAt)) throw unreadable();
  return { id: event.id, senderId, text: asWritten(event), createdAt };
}

/** X shortens links, and escapes three characters as in HTML. One pass: thousands of links fit into a message. */
function asWritten({ text = "", entities }: Static<typeof DM_EVENT>): string {
  const originals = new Map((entities?.urls ?? []).map(({ url, expanded_url }) => [url, expanded_url ?? url]));
  return text
    .replace(/https?:\/\/t\.co\/[a-z\d]+/gi, (url) => originals.get(url) ?? url)
    .replace(/&(lt|gt|amp);/g, (_escape, name: "lt" | "gt" | "amp") => UNESCAPED[name]);
}

const UNESCAPED = { lt: "<", gt: ">", amp: "&" } as const;
