import { invalidParameter } from "./error-answers.ts";
import type { Person } from "./people.ts";

/**
 * Parses query parameters that are lists of choices, separated by commas, and calls `answer` with them. A missing
 * parameter is an empty list; an unknown choice refuses the request.
 */
export function withChoices<N extends string>(
  { url }: Request,
  known: Readonly<Record<N, readonly string[]>>,
  answer: (chosen: Readonly<Record<N, readonly string[]>>) => Response,
): Response {
  const query = new URL(url).searchParams;
  const chosen = {} as Record<N, readonly string[]>;
  for (const name of Object.keys(known) as N[]) {
    chosen[name] = query.get(name)?.split(",") ?? [];
    const unknown = chosen[name].find((value) => !known[name].includes(value));
    if (unknown !== undefined) return invalidParameter(name, unknown, "is not one of the known values");
  }
  return answer(chosen);
}

/** Choices of the query parameter `user.fields`: https://docs.x.com/x-api/fundamentals/data-dictionary */
export const USER_FIELDS = {
  "user.fields": (
    "affiliation confirmed_email connection_status created_at description entities id is_identity_verified location " +
    "name parody profile_banner_url profile_image_url protected public_metrics receives_your_dm subscribes_to_you " +
    "subscription subscription_type url username verified verified_followers_count verified_type withheld"
  ).split(" "),
};

/**
 * Returns a person as X's API shows them: the three default fields, and the requested ones that the sandbox supports.
 */
export function shownUser({ id, name, username, ...person }: Person, fields: readonly string[]) {
  const others: Record<string, unknown> = {
    protected: person.protected ?? false,
    connection_status: person.follows_you === true ? ["followed_by"] : [],
    verified: false,
    verified_type: "none",
    ...(person.receives_your_dm === undefined ? {} : { receives_your_dm: person.receives_your_dm }),
  };
  const asked = Object.entries(others).filter(([field]) => fields.includes(field));
  return { id, name, username, ...Object.fromEntries(asked) };
}
