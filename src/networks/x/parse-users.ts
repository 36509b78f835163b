import { Type, type Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { SocialError, type SocialUser, type UserPage } from "../network.ts";
import { excerpt, oneLine } from "../sanitize-and-truncate-text.ts";
import { ID, META, parseNext, required, unreadable, USERNAME } from "./interpret-answer.ts";

const USER = Type.Object({
  id: ID,
  username: USERNAME,
  name: Type.String(),
  receives_your_dm: Type.Optional(Type.Boolean()),
  protected: Type.Optional(Type.Boolean()),
});

const ONE_USER = Type.Object({ data: USER });

/**
 * Schema of X's answers with a list of users. Users that were not found are listed under `errors`; if none was found,
 * or a page is empty, there is no `data`.
 */
const USERS = Type.Object({
  data: Type.Optional(Type.Array(Type.Unknown())),
  errors: Type.Optional(Type.Array(Type.Unknown())),
  meta: Type.Optional(META),
});

const FOUND = Type.Object({
  data: Type.Optional(Type.Array(Type.Object({ id: ID, author_id: Type.Optional(ID) }))),
  includes: Type.Optional(Type.Object({ users: Type.Optional(Type.Array(Type.Unknown())) })),
  meta: META,
});

/** Schema of X's error about the whole request, such as a list that does not exist. */
const NOT_FOUND = Type.Object({ detail: Type.String() });

export function readUser(text: string): SocialUser {
  return toSocialUser(required(ONE_USER, text).data);
}

export function readUsers(text: string): readonly SocialUser[] {
  const { data, errors, meta } = required(USERS, text);
  if (data === undefined && errors === undefined && meta === undefined) throw unreadable();
  return usersIn(data);
}

/** Reads a page of users. X also answers 200 if the account or list that was named does not exist. */
export function readUserPage(text: string): UserPage {
  const { data, errors, meta } = required(USERS, text);
  if (data === undefined && meta === undefined) throw errors === undefined ? unreadable() : refusedBy(errors);
  return { users: usersIn(data), ...parseNext(meta) };
}

/** Reads the authors of a page of posts from X, in the order of their newest post. */
export function readAuthors(text: string): UserPage & { readonly newest?: string; readonly posts: number } {
  const { data: posts = [], includes, meta } = required(FOUND, text);
  if (posts.length === 0 && meta.result_count !== 0) throw unreadable();
  const users = new Map(usersIn(includes?.users).map((user) => [user.id, user]));
  const authors = new Set(posts.flatMap(({ author_id }) => author_id ?? []));
  // Returns the later of two ids of X, which grow with time.
  const later = (one: string, other: string): string => (BigInt(one) > BigInt(other) ? one : other);
  const newest = posts.map(({ id }) => id).reduce(later, "");
  return {
    users: [...authors].flatMap((id) => users.get(id) ?? []),
    posts: posts.length,
    ...(newest === "" ? {} : { newest }),
    ...parseNext(meta),
  };
}

/** Returns the users among the entries. Another entry is left out, so that it does not spoil the page. */
function usersIn(entries: readonly unknown[] = []): SocialUser[] {
  return entries.filter((entry) => Value.Check(USER, entry)).map(toSocialUser);
}

function toSocialUser(user: Static<typeof USER>): SocialUser {
  return {
    id: user.id,
    username: user.username,
    name: oneLine(user.name),
    receivesOurDm: user.receives_your_dm,
    protected: user.protected,
  };
}

function refusedBy(errors: readonly unknown[]): SocialError {
  const known = errors.find((error) => Value.Check(NOT_FOUND, error));
  return new SocialError("rejected", excerpt(`X answered 200 without people ${known?.detail ?? ""}`));
}
