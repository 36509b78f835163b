import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { readJson } from "./json-answer.ts";
import { SocialError, type SentDm, type SocialUser } from "./network.ts";
import { oneLine } from "./plain-text.ts";

const ID = Type.String({ pattern: "^[0-9]{1,19}$" });
const USERNAME = Type.String({ pattern: "^[A-Za-z0-9_]{1,15}$" });

const USER = Type.Object({
  id: ID,
  username: USERNAME,
  name: Type.String(),
  receives_your_dm: Type.Optional(Type.Boolean()),
  protected: Type.Optional(Type.Boolean()),
});

const ONE_USER = Type.Object({ data: USER });

/** Who was not found is listed under `errors`; if that is everybody, or if a page is empty, there is no `data`. */
const USERS = Type.Object({
  data: Type.Optional(Type.Array(Type.Unknown())),
  errors: Type.Optional(Type.Array(Type.Unknown())),
  meta: Type.Optional(Type.Object({ next_token: Type.Optional(Type.String({ maxLength: 500 })) })),
});

const DM_EVENT = Type.Object({
  id: ID,
  text: Type.Optional(Type.String()),
  created_at: Type.String(),
  sender_id: Type.Optional(ID),
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

const CONVERSATION = Type.Object({
  data: Type.Array(DM_EVENT),
  includes: Type.Optional(Type.Object({ users: Type.Optional(Type.Array(Type.Object({ id: ID }))) })),
});

const EMPTY_CONVERSATION = Type.Object({
  meta: Type.Object({ result_count: Type.Literal(0) }),
});

const SENT = Type.Object({ data: Type.Object({ dm_event_id: ID }) });

/** Whether X could have made the id: ids are put into paths, so nothing else may pass. */
export const isXId = (text: string): boolean => Value.Check(ID, text);

export const isXUsername = (text: string): boolean => Value.Check(USERNAME, text);

/** The id of the message that was made, if the answer tells it. */
export function sentId(text: string): string | undefined {
  return readJson(SENT, text)?.data.dm_event_id;
}

export function readUser(text: string): SocialUser {
  return userOf(required(ONE_USER, text).data);
}

/** A page of users; an entry that is no user is left out rather than spoil the page. */
export function readUsers(text: string): { users: readonly SocialUser[]; next?: string } {
  const { data, errors, meta } = required(USERS, text);
  if (data === undefined && errors === undefined && meta === undefined) throw unreadable();
  const users = (data ?? []).filter((entry) => Value.Check(USER, entry)).map(userOf);
  return meta?.next_token === undefined ? { users } : { users, next: meta.next_token };
}

/**
 * The messages of a conversation. What cannot be read for certain is an error and not an absence: a message taken for
 * absent would count as not delivered.
 */
export function readConversation(text: string): readonly SentDm[] {
  if (readJson(CONVERSATION, text) === undefined && readJson(EMPTY_CONVERSATION, text) !== undefined) return [];
  const { data, includes } = required(CONVERSATION, text);
  // By the expansion X lists the senders; if there is only one, it is the sender of all.
  const senders = includes?.users ?? [];
  const onlySender = senders.length === 1 ? senders[0]?.id : undefined;
  return data.map((event) => {
    const senderId = event.sender_id ?? onlySender;
    const createdAt = Date.parse(event.created_at);
    if (senderId === undefined || Number.isNaN(createdAt)) throw unreadable();
    return { id: event.id, senderId, text: asWritten(event), createdAt };
  });
}

/** X shortens links, and escapes three characters as in HTML. */
function asWritten({ text = "", entities }: Static<typeof DM_EVENT>): string {
  const expanded = (entities?.urls ?? []).reduce(
    (whole, { url, expanded_url }) => whole.replaceAll(url, () => expanded_url ?? url),
    text,
  );
  return expanded.replace(/&(lt|gt|amp);/g, (_escape, name: "lt" | "gt" | "amp") => UNESCAPED[name]);
}

const UNESCAPED = { lt: "<", gt: ">", amp: "&" } as const;

function userOf(user: Static<typeof USER>): SocialUser {
  return {
    id: user.id,
    username: user.username,
    name: oneLine(user.name),
    receivesOurDm: user.receives_your_dm,
    protected: user.protected,
  };
}

function required<T extends TSchema>(schema: T, text: string): Static<T> {
  const body = readJson(schema, text);
  if (body === undefined) throw unreadable();
  return body;
}

function unreadable(): SocialError {
  return new SocialError("unavailable", "X answered 200 with a body that cannot be read");
}
