import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network-origins-and-refusals.ts";
import { invalidParameter, invalidRequest, refuseId, resourceNotFound, unauthorized } from "./error-answers.ts";
import { shownUser, USER_FIELDS, withChoices } from "./requested-fields.ts";
import { guarded, type Terms } from "./check-token-scopes-and-limits.ts";
import { paged, type PageSize } from "./paginate.ts";
import { LIST_ID, type Person } from "./people.ts";
import { bill, findById, findByUsername, others, type XState } from "./state.ts";

const SCOPES = ["tweet.read", "users.read"];

/**
 * Number of requests per 15 minutes that X accepts to the endpoint that describes the asking account itself:
 * https://docs.x.com/x-api/fundamentals/rate-limits
 */
const ME: Terms = { endpoint: "me", scopes: SCOPES, limit: 75 };
const LOOKUP_LIMIT = 900;
const FOLLOWERS: Terms = { endpoint: "followers", scopes: [...SCOPES, "follows.read"], limit: 300 };
const MEMBERS: Terms = { endpoint: "members", scopes: [...SCOPES, "list.read"], limit: 900 };

const FOLLOWERS_SIZE: PageSize = { least: 1, most: 1_000, usual: 100 };
const MEMBERS_SIZE: PageSize = { least: 1, most: 100, usual: 100 };

const VALUES_MAX = 100;

/** Handles look-ups of the account itself, and of up to 100 people by id or handle. */
export function userHandlers(state: XState) {
  const api = `${ORIGINS.x}/2/users`;
  return [
    http.get(`${api}/me`, ({ request }) =>
      guarded(state, request, ME, ({ userId }) => {
        const person = findById(state, userId);
        // A suspended account's tokens are invalid.
        if (person === undefined) return unauthorized();
        return withChoices(request, USER_FIELDS, ({ "user.fields": fields }) => {
          bill(state, { users: 1 });
          return HttpResponse.json({ data: shownUser(person, fields) });
        });
      }),
    ),
    http.get(`${api}/by`, ({ request }) =>
      lookUp(state, request, "usernames", /^[A-Za-z0-9_]{1,15}$/, (username) => findByUsername(state, username)),
    ),
    http.get(api, ({ request }) => lookUp(state, request, "ids", /^[0-9]{1,19}$/, (id) => findById(state, id))),
    ...audienceHandlers(state),
  ];
}

function lookUp(
  state: XState,
  request: Request,
  parameter: "ids" | "usernames",
  form: RegExp,
  find: (value: string) => Person | undefined,
): Promise<Response> {
  return guarded(state, request, { endpoint: parameter, scopes: SCOPES, limit: LOOKUP_LIMIT }, () => {
    const values = new URL(request.url).searchParams.get(parameter)?.split(",") ?? [];
    if (values.length < 1 || values.length > VALUES_MAX) {
      const count = `The number of values in the \`${parameter}\` query parameter list [${values.length}]`;
      return invalidRequest(`${count} is not between 1 and ${VALUES_MAX}`);
    }
    const malformed = values.find((value) => !form.test(value));
    if (malformed !== undefined) return invalidParameter(parameter, malformed, `does not match ${form.source}`);
    return withChoices(request, USER_FIELDS, ({ "user.fields": fields }) => {
      const data = values.flatMap((value) => find(value) ?? []).map((person) => shownUser(person, fields));
      bill(state, { users: data.length });
      const unknown = values.filter((value) => find(value) === undefined);
      const errors = unknown.map((value) => resourceNotFound(parameter, value, "user"));
      return HttpResponse.json({ ...(data.length > 0 ? { data } : {}), ...(errors.length > 0 ? { errors } : {}) });
    });
  });
}

/** Handles requests for followers and list members, newest first. */
function audienceHandlers(state: XState) {
  const api = `${ORIGINS.x}/2`;
  return [
    http.get(`${api}/users/:id/followers`, ({ request, params }) =>
      guarded(state, request, FOLLOWERS, ({ userId }) => {
        const id = String(params["id"]);
        const malformed = refuseId("id", id);
        if (malformed !== undefined) return malformed;
        if (findById(state, id) === undefined) return noResource(id, "user");
        // `follows_you` says that a person follows the account that asks. The sandbox knows the followers of no other
        // account.
        const followers = id === userId ? others(state).filter((person) => person.follows_you === true) : [];
        return peoplePage(state, request, followers, FOLLOWERS_SIZE, "followers");
      }),
    ),
    http.get(`${api}/lists/:id/members`, ({ request, params }) =>
      guarded(state, request, MEMBERS, () => {
        const id = String(params["id"]);
        const malformed = refuseId("id", id);
        if (malformed !== undefined) return malformed;
        if (id !== LIST_ID) return noResource(id, "list");
        return peoplePage(state, request, others(state), MEMBERS_SIZE, "users");
      }),
    ),
  ];
}

/** Answers that a user or list does not exist. X uses the status 200 for this. */
function noResource(id: string, type: "user" | "list"): Response {
  return HttpResponse.json({ errors: [resourceNotFound("id", id, type)] });
}

function peoplePage(
  state: XState,
  request: Request,
  people: readonly Person[],
  size: PageSize,
  kind: "followers" | "users",
): Response {
  const listing = {
    url: new URL(request.url),
    now: state.clock.now(),
    all: people.toReversed(),
    size,
    tokens: "both",
  } as const;
  return withChoices(request, USER_FIELDS, ({ "user.fields": fields }) =>
    paged(listing, (page) => {
      bill(state, { [kind]: page.length });
      return { data: page.map((person) => shownUser(person, fields)) };
    }),
  );
}
