import { invalidParameter } from "./answers.ts";
import type { Person } from "./people.ts";

/** A comma-separated parameter whose values X knows; `unknown` is the first that it does not. */
export interface Choices {
  readonly values: readonly string[];
  readonly unknown: { readonly name: string; readonly value: string } | undefined;
}

export function choicesOf(query: URLSearchParams, name: string, known: readonly string[]): Choices {
  const values = query.get(name)?.split(",") ?? [];
  const value = values.find((one) => !known.includes(one));
  return { values, unknown: value === undefined ? undefined : { name, value } };
}

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

/** Answers with the fields that were asked for; a field that X does not know refuses it all. */
export function withFields(request: Request, answer: (fields: readonly string[]) => Response): Response {
  const { values, unknown } = readUserFields(new URL(request.url).searchParams);
  if (unknown === undefined) return answer(values);
  return invalidParameter(unknown.name, unknown.value, "is not one of the known values");
}
