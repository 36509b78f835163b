import { http, HttpResponse } from "msw";
import { ORIGINS } from "../network.ts";
import { invalidRequest, resourceNotFound } from "./answers.ts";
import { bill } from "./billing.ts";
import { guarded, type Terms } from "./guard.ts";
import { paged, type PageSize } from "./page.ts";
import { LIST_ID, type Person } from "./people.ts";
import { findById, others, type XState } from "./state.ts";
import { shownUser } from "./user-fields.ts";
import { withFields } from "./users.ts";

const READ = ["tweet.read", "users.read"];

/** Limits in requests in 15 minutes: https://docs.x.com/x-api/fundamentals/rate-limits */
const FOLLOWERS: Terms = { endpoint: "followers", scopes: [...READ, "follows.read"], limit: 300 };
const MEMBERS: Terms = { endpoint: "members", scopes: [...READ, "list.read"], limit: 900 };

const FOLLOWERS_SIZE: PageSize = { least: 1, most: 1_000, usual: 100 };
const MEMBERS_SIZE: PageSize = { least: 1, most: 100, usual: 100 };

/** People found by what they do: who follows, who is on a list; the newest first. */
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
        return peoplePage(state, request, followers, FOLLOWERS_SIZE, "followers");
      }),
    ),
    http.get(`${api}/lists/:id/members`, ({ request, params }) =>
      guarded(state, request, MEMBERS, () => {
        const id = String(params["id"]);
        if (!/^\d{1,19}$/.test(id)) return invalidRequest("The `id` path parameter value does not match ^[0-9]{1,19}$");
        if (id !== LIST_ID) return HttpResponse.json({ errors: [resourceNotFound("id", id, "list")] });
        return peoplePage(state, request, others(state), MEMBERS_SIZE, "users");
      }),
    ),
  ];
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
  return withFields(request, (fields) =>
    paged(listing, (page) => {
      bill(state.billed, { [kind]: page.length });
      return { data: page.map((person) => shownUser(person, fields)) };
    }),
  );
}
