import { SocialError, type SocialNetwork } from "./network.ts";
import { isXId, isXUsername } from "./x-bodies.ts";
import { readNewest, readWhole } from "./x-messages.ts";
import { FRAME_BYTES, optional, sized, type Wanted } from "./x-page.ts";
import { createRead, type XOptions, type XRead } from "./x-read.ts";
import { sendDm } from "./x-send.ts";
import { readAuthors, readUser, readUserPage, readUsers } from "./x-users.ts";

/** What one look-up of users takes. */
const BATCH_MAX = 100;

/** What `max_results` may be: https://docs.x.com/x-api, the reference of each endpoint. */
const FOLLOWERS = { least: 1, most: 1_000 };
const MEMBERS = { least: 1, most: 100 };
const POSTS = { least: 10, most: 100 };

/** A name of 50 characters, each escaped as two of `\uXXXX`, beside the other fields. */
const USER_BYTES_MAX = 1024;

/** A post of 25,000 characters, which are few; one of 280 has 3,400 bytes where all is escaped. */
const POST_BYTES_MAX = 32 * 1024;

const USER_FIELDS = { "user.fields": "receives_your_dm,protected" };

/** X API v2, as far as the service needs it. */
export function createX(options: XOptions): SocialNetwork {
  const read = createRead(options);
  return {
    network: "x",
    async me(token) {
      const { id, username, name } = readUser(await read(token, { path: "/2/users/me", query: {} }));
      return { id, username, name };
    },
    usersByUsername: (token, usernames) =>
      lookUp(read, token, "/2/users/by", "usernames", usernames.filter(isXUsername)),
    usersById: (token, ids) => lookUp(read, token, "/2/users", "ids", ids.filter(isXId)),
    async followers(token, userId, page) {
      return people(read, token, `/2/users/${checkedId(userId)}/followers`, sized(page, FOLLOWERS));
    },
    async listMembers(token, listId, page) {
      return people(read, token, `/2/lists/${checkedId(listId)}/members`, sized(page, MEMBERS));
    },
    async searchAuthors(token, query, page) {
      const { size, cursor } = sized(page, POSTS);
      const text = await read(token, {
        path: "/2/tweets/search/recent",
        query: {
          query,
          max_results: String(size),
          expansions: "author_id",
          ...USER_FIELDS,
          ...optional({ next_token: cursor, since_id: page.since }),
        },
        answerBytesMax: FRAME_BYTES + size * (POST_BYTES_MAX + USER_BYTES_MAX),
      });
      return readAuthors(text);
    },
    sendDm: (token, recipientId, text) => sendDm(options, token, recipientId, text),
    async conversation(token, recipientId, limit) {
      return readWhole(read, token, checkedId(recipientId), limit);
    },
    inbox: (token, page) => readNewest(read, token, page),
  };
}

/** A value that X cannot have makes it refuse them all, so only `possible` ones may come here. */
async function lookUp(read: XRead, token: string, path: string, key: string, possible: readonly string[]) {
  if (possible.length > BATCH_MAX) throw new RangeError(`X looks up at most ${BATCH_MAX} users at once`);
  if (possible.length === 0) return [];
  const query = { [key]: possible.join(","), ...USER_FIELDS };
  return readUsers(await read(token, { path, query, answerBytesMax: userBytes(possible.length) }));
}

async function people(read: XRead, token: string, path: string, { size, cursor }: Wanted) {
  const query = { max_results: String(size), ...USER_FIELDS, ...optional({ pagination_token: cursor }) };
  return readUserPage(await read(token, { path, query, answerBytesMax: userBytes(size) }));
}

function userBytes(users: number): number {
  return FRAME_BYTES + users * USER_BYTES_MAX;
}

function checkedId(id: string): string {
  if (!isXId(id)) throw new SocialError("rejected", "not an id of X");
  return id;
}
