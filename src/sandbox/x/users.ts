import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { invalidParameter, invalidRequest, resourceNotFound, unauthorized } from "./answers.ts";
import { bill } from "./billing.ts";
import { guarded } from "./guard.ts";
import type { Person } from "./people.ts";
import { findById, findByUsername, type XState } from "./state.ts";
import { readUserFields, shownUser } from "./user-fields.ts";

const SCOPES = ["tweet.read", "users.read"];

/** Requests in 15 minutes: https://docs.x.com/x-api/fundamentals/rate-limits */
const ME_LIMIT = 75;
const LOOKUP_LIMIT = 900;

const VALUES_MAX = 100;

/** Look-ups: of the account itself, and of up to 100 people by id or handle. */
export function userHandlers(state: XState) {
  const api = `${ORIGINS.x}/2/users`;
  return [
    http.get(`${api}/me`, ({ request }) =>
      guarded(state, request, { endpoint: "me", scopes: SCOPES, limit: ME_LIMIT }, ({ userId }) => {
        const person = findById(state, userId);
        // A suspended account's tokens are worth nothing.
        if (person === undefined) return unauthorized();
        return withFields(request, (fields) => {
          bill(state.billed, { users: 1 });
          return HttpResponse.json({ data: shownUser(person, fields) });
        });
      }),
    ),
    http.get(`${api}/by`, ({ request }) =>
      lookUp(state, request, "usernames", /^[A-Za-z0-9_]{1,15}$/, (username) => findByUsername(state, username)),
    ),
    http.get(api, ({ request }) => lookUp(state, request, "ids", /^[0-9]{1,19}$/, (id) => findById(state, id))),
  ];
}

/** Answers with the fields that were asked for; a field that X does not know refuses it all. */
export function withFields(request: Request, answer: (fields: readonly string[]) => Response): Response {
  const { values, unknown } = readUserFields(new URL(request.url).searchParams);
  if (unknown === undefined) return answer(values);
  return invalidParameter(unknown.name, unknown.value, "is not one of the known values");
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
    return withFields(request, (fields) => {
      const data = values.flatMap((value) => find(value) ?? []).map((person) => shownUser(person, fields));
      bill(state.billed, { users: data.length });
      const unknown = values.filter((value) => find(value) === undefined);
      const errors = unknown.map((value) => resourceNotFound(parameter, value, "user"));
      return HttpResponse.json({ ...(data.length > 0 ? { data } : {}), ...(errors.length > 0 ? { errors } : {}) });
    });
  });
}
