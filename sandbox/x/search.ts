import { http } from "msw";
import { ORIGINS } from "../network-origins-and-refusals.ts";
import { invalidParameter, invalidRequest } from "./error-answers.ts";
import { shownUser, USER_FIELDS, withChoices } from "./requested-fields.ts";
import { guarded, type Terms } from "./check-token-scopes-and-limits.ts";
import { paged, type PageSize } from "./paginate.ts";
import { oldestSearched, recentPosts, snowflakeAt } from "./invented-posts.ts";
import { bill, findAll, type XState } from "./state.ts";

/**
 * Scopes that a search requires, and its limit per user and 15 minutes:
 * https://docs.x.com/x-api/fundamentals/rate-limits
 */
const SEARCH: Terms = { endpoint: "search", scopes: ["tweet.read", "users.read"], limit: 300 };

const SIZE: PageSize = { least: 10, most: 100, usual: 10 };

/** Maximum length of a query for self-serve accounts. X allows other accounts more. */
const QUERY_CHARS_MAX = 512;

/** Choices of the query parameter `expansions` in X's documentation. The sandbox only supports `author_id`. */
const EXPANSIONS = (
  "attachments.media_keys attachments.poll_ids author_id entities.mentions.username geo.place_id in_reply_to_user_id " +
  "referenced_posts referenced_posts.id"
).split(" ");

/** Handles requests that search recent posts. */
export function searchHandlers(state: XState) {
  return [
    http.get(`${ORIGINS.x}/2/tweets/search/recent`, ({ request }) =>
      guarded(state, request, SEARCH, () => search(state, request)),
    ),
  ];
}

function search(state: XState, request: Request): Response {
  const url = new URL(request.url);
  const query = url.searchParams.get("query") ?? "";
  const refused = refuse(state, url.searchParams, query);
  if (refused !== undefined) return refused;
  const since = BigInt(url.searchParams.get("since_id") ?? 0);
  const all = recentPosts(state).filter(({ id, text }) => BigInt(id) > since && matches(query, text.toLowerCase()));
  return withChoices(request, { expansions: EXPANSIONS, ...USER_FIELDS }, (chosen) => {
    const expands = chosen.expansions.includes("author_id");
    return paged({ url, now: state.clock.now(), all, size: SIZE, tokens: "next" }, (page) => {
      const authors = page.map(({ author_id }) => author_id);
      const users = expands ? findAll(state, authors) : [];
      bill(state, { posts: page.length, users: users.length });
      return {
        data: page.map(({ id, text, author_id }) => ({ id, text, ...(expands ? { author_id } : {}) })),
        ...(expands ? { includes: { users: users.map((person) => shownUser(person, chosen["user.fields"])) } } : {}),
        meta: { newest_id: page[0]?.id, oldest_id: page.at(-1)?.id },
      };
    });
  });
}

function refuse(state: XState, parameters: URLSearchParams, query: string): Response | undefined {
  if (query.length < 1 || query.length > QUERY_CHARS_MAX) {
    return invalidParameter("query", query.slice(0, 20), `is not between 1 and ${QUERY_CHARS_MAX} characters`);
  }
  if (wordsOf(query).length === 0) {
    return invalidParameter("query", query, "must have at least one stand-alone operator");
  }
  const since = parameters.get("since_id");
  return since === null ? undefined : refuseSince(state, since);
}

/**
 * Refuses a `since_id` as X does if it is older than the oldest post that a search can find; undefined if it is valid.
 */
function refuseSince(state: XState, since: string): Response | undefined {
  if (!/^\d{1,19}$/.test(since)) return invalidParameter("since_id", since, "does not match ^[0-9]{1,19}$");
  const oldest = oldestSearched(state.clock);
  const least = snowflakeAt(oldest, 0);
  if (BigInt(since) > BigInt(least)) return undefined;
  const minute = `${new Date(oldest).toISOString().slice(0, 16)}Z`;
  const wish = `Please use a 'since_id' that is larger than ${least}`;
  return invalidRequest(`'since_id' must be a tweet id created after ${minute}. ${wish}`, { since_id: [since] });
}

/**
 * Returns the plain words of a search's query. Operators such as `lang:en` and `-is:retweet` have no effect in the
 * sandbox.
 */
function wordsOf(query: string): string[] {
  const words = query.replace(/["()]/g, " ").split(/\s+/);
  return words.filter((word) => !/^-|:|^$|^OR$/.test(word)).map((word) => word.toLowerCase());
}

/** True if the post contains all words of the query, or one of them if the query has `OR`. */
function matches(query: string, post: string): boolean {
  const words = wordsOf(query);
  const found = words.filter((word) => post.includes(word)).length;
  return / OR /.test(query) ? found > 0 : found === words.length;
}
