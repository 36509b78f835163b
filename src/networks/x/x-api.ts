import { NetworkFault } from "../safe-fetch.ts";
import { SocialError, type PageRequest, type Prices, type SocialNetwork } from "../network.ts";
import { sendOutcome, isXId, isXUsername } from "./interpret-answer.ts";
import { fetchConversation, fetchInbox } from "./read-messages.ts";
import {
  createReads,
  FRAME_BYTES,
  clampPageSize,
  type PageSize,
  type XOptions,
  type XRead,
} from "./send-get-request.ts";
import { readAuthors, readUser, readUserPage, readUsers } from "./parse-users.ts";

const BATCH_MAX = 100;

/** Range of `max_results` for followers: https://docs.x.com/x-api, the reference of the endpoint. */
const FOLLOWERS = { least: 1, most: 1_000 };
/** Range of `max_results` for members of a list, from X's reference of that endpoint. */
const MEMBERS = { least: 1, most: 100 };
/** Range of `max_results` for a search of recent posts, from X's reference of that endpoint. */
const POSTS = { least: 10, most: 100 };

/**
 * Maximum size of a user in X's JSON, in bytes: a name of 50 characters, each escaped as two of `\uXXXX`, and the other
 * fields.
 */
const USER_BYTES_MAX = 1024;

/**
 * Maximum size of a post in X's JSON, in bytes: 25,000 characters, which are rare. A post of 280 characters has 3,400
 * bytes if all are escaped.
 */
const POST_BYTES_MAX = 32 * 1024;

const USER_FIELDS = { "user.fields": "receives_your_dm,protected" };

/** Creates the client of X API v2, limited to what the service needs. */
export function createX(options: XOptions): SocialNetwork {
  const reads = createReads(options);
  const { apiUrl, safeFetch, clock } = options;
  return {
    network: "x",
    async me(token) {
      const { id, username, name } = readUser(await reads(token)({ path: "/2/users/me", query: {} }));
      return { id, username, name };
    },
    usersByUsername: (token, usernames) =>
      lookUp(reads(token), "/2/users/by", "usernames", usernames.filter(isXUsername)),
    usersById: (token, ids) => lookUp(reads(token), "/2/users", "ids", ids.filter(isXId)),
    async followers(token, userId, page) {
      return people(reads(token), `/2/users/${checkedId(userId)}/followers`, page, FOLLOWERS);
    },
    async listMembers(token, listId, page) {
      return people(reads(token), `/2/lists/${checkedId(listId)}/members`, page, MEMBERS);
    },
    async searchAuthors(token, query, page) {
      const size = clampPageSize(page, POSTS);
      const text = await reads(token)({
        path: "/2/tweets/search/recent",
        query: {
          query,
          max_results: String(size),
          expansions: "author_id",
          ...USER_FIELDS,
          next_token: page.cursor,
          since_id: page.since,
        },
        answerBytesMax: FRAME_BYTES + size * (POST_BYTES_MAX + USER_BYTES_MAX),
      });
      return readAuthors(text);
    },
    async sendDm(token, recipientId, text) {
      const refusal = refuseBeforehand(recipientId, text);
      if (refusal !== undefined) return { outcome: "rejected", detail: refusal, rate: undefined };
      try {
        const answer = await safeFetch(`${apiUrl}/2/dm_conversations/with/${recipientId}/messages`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          // X refuses a body with any other field.
          body: JSON.stringify({ text }),
          timeoutMs: SEND_TIMEOUT_MS,
        });
        return sendOutcome(answer, clock());
      } catch (fault) {
        if (!(fault instanceof NetworkFault)) throw fault;
        const outcome = fault.certainlyNotSent ? "unreachable" : "in_doubt";
        return { outcome, detail: fault.message, rate: undefined };
      }
    },
    async conversation(token, recipientId, limit) {
      return fetchConversation(reads(token), checkedId(recipientId), limit);
    },
    inbox: (token, page) => fetchInbox(reads(token), page),
  };
}

/**
 * Looks up users by names or ids. If one value does not have the form of an X name or id, X refuses the whole request,
 * so callers must pass only well-formed values in `possible`.
 */
async function lookUp(read: XRead, path: string, key: string, possible: readonly string[]) {
  if (possible.length > BATCH_MAX) throw new RangeError(`X looks up at most ${BATCH_MAX} users at once`);
  if (possible.length === 0) return [];
  const query = { [key]: possible.join(","), ...USER_FIELDS };
  return readUsers(await read({ path, query, answerBytesMax: userBytes(possible.length) }));
}

async function people(read: XRead, path: string, page: PageRequest, sizes: PageSize) {
  const size = clampPageSize(page, sizes);
  const query = { max_results: String(size), ...USER_FIELDS, pagination_token: page.cursor };
  return readUserPage(await read({ path, query, answerBytesMax: userBytes(size) }));
}

function userBytes(users: number): number {
  return FRAME_BYTES + users * USER_BYTES_MAX;
}

function checkedId(id: string): string {
  if (!isXId(id)) throw new SocialError("rejected", "not an id of X");
  return id;
}

/**
 * Time-out of sending a message, longer than that of a read, because giving up early costs a message in doubt. It has
 * to stay below IN_DOUBT_SETTLE_SECONDS.
 */
const SEND_TIMEOUT_MS = 15_000;

/**
 * Maximum length of a direct message on X, by its older reference. It is counted in UTF-16 units, which are never fewer
 * than characters.
 */
const DM_UNITS_MAX = 10_000;

function refuseBeforehand(recipientId: string, text: string): string | undefined {
  if (!isXId(recipientId)) return "the recipient's id is not one of X";
  if (text === "") return "the text is empty";
  if (text.length > DM_UNITS_MAX) return `the text is longer than ${DM_UNITS_MAX} characters`;
  return undefined;
}

/**
 * X's prices in millionths of a dollar, by https://docs.x.com/x-api/getting-started/pricing in November 2026, for each
 * thing returned (our messages too) or sent. A repeated read on one UTC day is free, so sums by this table are upper
 * bounds.
 */
export const X_PRICES: Prices = {
  send: 15_000,
  /** Price of a user who is looked up, is a member of a list, or follows another account. */
  user: 10_000,
  follower: 10_000,
  post: 5_000,
  message: 10_000,
};

/**
 * Price of an "owned read", by the same page of X: something that belongs to the account which owns the developer app,
 * such as its followers.
 */
const OWNED_READ = 1_000;

/**
 * Returns X's prices. `accountOwnsApp` is true if the authorized account owns the developer app, which only the
 * operator can know.
 */
export function xPrices({ accountOwnsApp }: { readonly accountOwnsApp: boolean }): Prices {
  return accountOwnsApp ? { ...X_PRICES, follower: OWNED_READ } : X_PRICES;
}
