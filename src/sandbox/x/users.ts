import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { invalidRequest } from "./answers.ts";
import { admit } from "./guard.ts";
import type { Person } from "./people.ts";
import { findByUsername, type XState } from "./state.ts";

const READ = ["tweet.read", "users.read"];

/** What `user.fields` may name, as far as the sandbox has it. */
const USER_FIELDS = new Set([
  "connection_status",
  "created_at",
  "description",
  "id",
  "name",
  "protected",
  "public_metrics",
  "receives_your_dm",
  "subscription_type",
  "username",
  "verified",
  "verified_type",
  "withheld",
]);

/** Look-ups of people, followers, searches and lists. */
export function userHandlers(state: XState) {
  const api = `${ORIGINS.x}/2`;
  return [
    http.get(`${api}/users/me`, ({ request }) => {
      const admitted = admit(state, request, { endpoint: "me", scopes: READ, limit: 75 });
      if ("refused" in admitted) return admitted.refused;
      const person = state.people.get(admitted.grant.userId);
      if (person === undefined) return invalidRequest("The account is gone.");
      return withFields(request, (shown) => HttpResponse.json({ data: shown(person) }, admitted));
    }),
    http.get(`${api}/users/by`, ({ request }) =>
      lookup(state, request, "usernames", /^\w{1,15}$/, (username) => findByUsername(state, username)),
    ),
    http.get(`${api}/users`, ({ request }) =>
      lookup(state, request, "ids", /^\d{1,19}$/, (id) => state.people.get(id)),
    ),
    http.get(`${api}/users/:id/followers`, ({ request, params }) => {
      const terms = { endpoint: "followers", scopes: [...READ, "follows.read"], limit: 300 };
      return paged(state, request, terms, [1, 1_000, 100], () =>
        String(params["id"]) === "" ? [] : [...state.people.values()].filter((person) => person.follows_you === true),
      );
    }),
    http.get(`${api}/lists/:id/members`, ({ request }) => {
      const terms = { endpoint: "list", scopes: [...READ, "list.read"], limit: 900 };
      return paged(state, request, terms, [1, 100, 100], () =>
        [...state.people.values()].filter((person) => person.can_authorize !== true),
      );
    }),
    http.get(`${api}/tweets/search/recent`, ({ request }) => search(state, request)),
  ];
}

type Shown = (person: Person) => Record<string, unknown>;

/** Answers with those fields that were asked for; unknown ones are X's 400. */
function withFields(request: Request, answer: (shown: Shown) => Response): Response {
  const asked = new URL(request.url).searchParams.get("user.fields")?.split(",") ?? [];
  const unknown = asked.find((field) => !USER_FIELDS.has(field));
  if (unknown !== undefined) {
    return invalidRequest(`The \`user.fields\` query parameter value [${unknown}] is not one of the known fields`, {
      "user.fields": [unknown],
    });
  }
  return answer((person) => show(person, asked));
}

function show(person: Person, asked: readonly string[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {
    protected: person.protected ?? false,
    receives_your_dm: person.receives_your_dm,
    connection_status: person.follows_you === true ? ["followed_by"] : [],
    verified: false,
    verified_type: "none",
  };
  const { id, name, username } = person;
  return {
    id,
    name,
    username,
    ...Object.fromEntries(asked.flatMap((field) => (field in fields ? [[field, fields[field]]] : []))),
  };
}

function lookup(
  state: XState,
  request: Request,
  parameter: "ids" | "usernames",
  form: RegExp,
  find: (value: string) => Person | undefined,
): Response {
  const admitted = admit(state, request, { endpoint: `users by ${parameter}`, scopes: READ, limit: 900 });
  if ("refused" in admitted) return admitted.refused;
  const values = new URL(request.url).searchParams.get(parameter)?.split(",") ?? [];
  if (values.length < 1 || values.length > 100) return invalidRequest(`${parameter} wants 1 to 100 values`);
  const malformed = values.find((value) => !form.test(value));
  if (malformed !== undefined) {
    return invalidRequest(`The \`${parameter}\` query parameter value [${malformed}] does not match ${form.source}`);
  }
  return withFields(request, (shown) => {
    const data = values.flatMap((value) => find(value) ?? []).map(shown);
    const errors = values.filter((value) => find(value) === undefined).map((value) => notFound(parameter, value));
    const body = { ...(data.length > 0 ? { data } : {}), ...(errors.length > 0 ? { errors } : {}) };
    return HttpResponse.json(body, admitted);
  });
}

function notFound(parameter: string, value: string) {
  return {
    value,
    detail: `Could not find user with ${parameter}: [${value}].`,
    title: "Not Found Error",
    resource_type: "user",
    parameter,
    resource_id: value,
    type: "https://api.x.com/2/problems/resource-not-found",
  };
}

/** A page of people; `bounds` are the least, most and default `max_results`. */
function paged(
  state: XState,
  request: Request,
  terms: Parameters<typeof admit>[2],
  bounds: readonly [number, number, number],
  people: () => readonly Person[],
): Response {
  const admitted = admit(state, request, terms);
  if ("refused" in admitted) return admitted.refused;
  const parameters = new URL(request.url).searchParams;
  const size = Number(parameters.get("max_results") ?? bounds[2]);
  if (!Number.isInteger(size) || size < bounds[0] || size > bounds[1]) {
    return invalidRequest(
      `The \`max_results\` query parameter value [${size}] is not between ${bounds[0]} and ${bounds[1]}`,
    );
  }
  const token = parameters.get("pagination_token");
  const start = token === null ? 0 : Number(Buffer.from(token, "base64url").toString());
  if (!Number.isInteger(start)) return invalidRequest("The `pagination_token` is not valid");
  return withFields(request, (shown) => {
    const all = people();
    const data = all.slice(start, start + size).map(shown);
    const next =
      start + size < all.length ? { next_token: Buffer.from(String(start + size)).toString("base64url") } : {};
    const meta = { result_count: data.length, ...next };
    return HttpResponse.json(data.length > 0 ? { data, meta } : { meta }, admitted);
  });
}

function search(state: XState, request: Request): Response {
  const query = new URL(request.url).searchParams.get("query") ?? "";
  if (query.length < 1 || query.length > 512) return invalidRequest("The `query` is not between 1 and 512 characters");
  const admitted = admit(state, request, { endpoint: "search", scopes: READ, limit: 300 });
  if ("refused" in admitted) return admitted.refused;
  return withFields(request, (shown) => {
    const authors = [...state.people.values()].filter((person) => person.can_authorize !== true);
    const data = authors.map(({ id }, at) => ({
      id: String(1_900_000_000_000_000_000n + BigInt(at)),
      author_id: id,
      text: query,
    }));
    const expand = new URL(request.url).searchParams.get("expansions")?.includes("author_id") ?? false;
    const includes = expand ? { includes: { users: authors.map(shown) } } : {};
    return HttpResponse.json({ data, ...includes, meta: { result_count: data.length } }, admitted);
  });
}
