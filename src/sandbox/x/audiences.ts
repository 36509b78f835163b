import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { invalidParameter, invalidRequest, resourceNotFound } from "./answers.ts";
import { guarded, type Terms } from "./guard.ts";
import { paged, type PageSize } from "./page.ts";
import type { Person } from "./people.ts";
import { choicesOf } from "./query.ts";
import { findById, others, type XState } from "./state.ts";
import { shownUser } from "./user-fields.ts";
import { withFields } from "./users.ts";

const READ = ["tweet.read", "users.read"];

/** Limits in requests in 15 minutes: https://docs.x.com/x-api/fundamentals/rate-limits */
const FOLLOWERS: Terms = { endpoint: "followers", scopes: [...READ, "follows.read"], limit: 300 };
const MEMBERS: Terms = { endpoint: "members", scopes: [...READ, "list.read"], limit: 900 };
const SEARCH: Terms = { endpoint: "search", scopes: READ, limit: 300 };

const FOLLOWERS_SIZE: PageSize = { least: 1, most: 1_000, usual: 100 };
const MEMBERS_SIZE: PageSize = { least: 1, most: 100, usual: 100 };
const SEARCH_SIZE: PageSize = { least: 10, most: 100, usual: 10 };

/** Self-serve accounts; others have more. */
const QUERY_CHARS_MAX = 512;

const FIRST_POST_ID = 1_900_000_000_000_000_000n;

/** People found by what they do: who follows, who is on a list, who posted. */
export function audienceHandlers(state: XState) {
  const api = `${ORIGINS.x}/2`;
  return [
    http.get(`${api}/users/:id/followers`, ({ request, params }) =>
      guarded(state, request, FOLLOWERS, ({ userId }) => {
        const id = String(params["id"]);
        if (!/^\d{1,19}$/.test(id)) return invalidRequest("The `id` path parameter value does not match ^[0-9]{1,19}$");
        if (findById(state, id) === undefined)
          return HttpResponse.json({ errors: [resourceNotFound("id", id, "user")] });
        // `follows_you` is about the account that asks; of others nothing is known here.
        const followers = id === userId ? others(state).filter((person) => person.follows_you === true) : [];
        return peoplePage(request, followers, FOLLOWERS_SIZE);
      }),
    ),
    http.get(`${api}/lists/:id/members`, ({ request, params }) =>
      guarded(state, request, MEMBERS, () => {
        const id = String(params["id"]);
        if (!/^\d{1,19}$/.test(id)) return invalidRequest("The `id` path parameter value does not match ^[0-9]{1,19}$");
        // One list under every id: everybody is on it.
        return peoplePage(request, others(state), MEMBERS_SIZE);
      }),
    ),
    http.get(`${api}/tweets/search/recent`, ({ request }) =>
      guarded(state, request, SEARCH, () => search(state, request)),
    ),
  ];
}

function peoplePage(request: Request, people: readonly Person[], size: PageSize): Response {
  return withFields(request, (fields) =>
    paged(new URL(request.url).searchParams, people, size, (page) => ({
      data: page.map((person) => shownUser(person, fields)),
    })),
  );
}

function search(state: XState, request: Request): Response {
  const parameters = new URL(request.url).searchParams;
  const query = parameters.get("query") ?? "";
  if (query.length < 1 || query.length > QUERY_CHARS_MAX) {
    return invalidParameter("query", query.slice(0, 20), `is not between 1 and ${QUERY_CHARS_MAX} characters`);
  }
  const expansions = choicesOf(parameters, "expansions", ["author_id"]);
  if (expansions.unknown !== undefined) {
    return invalidParameter("expansions", expansions.unknown.value, "is not one of the known values");
  }
  const words = wordsOf(query);
  if (words.length === 0) return invalidParameter("query", query, "must have at least one stand-alone operator");
  const expands = expansions.values.includes("author_id");
  const authors = others(state).filter(({ post = "" }) => matches(query, words, post.toLowerCase()));
  return withFields(request, (fields) =>
    paged(parameters, authors, SEARCH_SIZE, (page) => ({
      data: page.map(({ id, post }) => ({ id: postIdOf(id), text: post, ...(expands ? { author_id: id } : {}) })),
      ...(expands ? { includes: { users: page.map((person) => shownUser(person, fields)) } } : {}),
    })),
  );
}

/** The plain words of a query; operators such as `lang:en` and `-is:retweet` leave nothing out here. */
function wordsOf(query: string): string[] {
  const words = query.replace(/["()]/g, " ").split(/\s+/);
  return words.filter((word) => !/^-|:|^$|^OR$/.test(word)).map((word) => word.toLowerCase());
}

/** X wants every word, or with `OR` any. */
function matches(query: string, words: readonly string[], post: string): boolean {
  const found = words.filter((word) => post.includes(word)).length;
  return / OR /.test(query) ? found > 0 : found === words.length;
}

/** Each author has one post. */
function postIdOf(authorId: string): string {
  return String(FIRST_POST_ID + (BigInt(authorId) % 1_000_000_000n));
}
