import type { Person } from "./people.ts";
import { choicesOf, type Choices } from "./query.ts";

/** What `user.fields` may name: https://docs.x.com/x-api/fundamentals/data-dictionary */
const USER_FIELDS = [
  "affiliation",
  "confirmed_email",
  "connection_status",
  "created_at",
  "description",
  "entities",
  "id",
  "is_identity_verified",
  "location",
  "name",
  "parody",
  "profile_banner_url",
  "profile_image_url",
  "protected",
  "public_metrics",
  "receives_your_dm",
  "subscribes_to_you",
  "subscription",
  "subscription_type",
  "url",
  "username",
  "verified",
  "verified_followers_count",
  "verified_type",
  "withheld",
];

export function readUserFields(query: URLSearchParams): Choices {
  return choicesOf(query, "user.fields", USER_FIELDS);
}

/** The three default fields, and those that were asked for and that the sandbox has. */
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
