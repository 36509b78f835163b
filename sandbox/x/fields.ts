import { invalidParameter } from "./answers.ts";
import type { Person } from "./people.ts";

/**
 * Parses comma-separated parameters and answers with the chosen values by parameter; a missing one is an empty list. An
 * unknown value refuses the whole request.
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

/** https://docs.x.com/x-api/fundamentals/data-dictionary */
export const USER_FIELDS = {
  "user.fields": (
    "affiliation confirmed_email connection_status created_at description entities id is_identity_verified location " +
    "name parody profile_banner_url profile_image_url protected public_metrics receives_your_dm subscribes_to_you " +
    "subscription subscription_type url username verified verified_followers_count verified_type withheld"
  ).split(" "),
};

/** The three default fields, plus the requested fields that the sandbox supports. */
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
