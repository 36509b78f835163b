import { Type, type TSchema } from "@sinclair/typebox";
import { CHANNELS } from "../../../events/channel.ts";
import { basis, tracking } from "../../../events/outreach.ts";
import {
  CONSENT_SOURCE_CHARS_MAX,
  CONSENT_TEXT_CHARS_MAX,
  CONSENT_TIME_CHARS_MAX,
} from "../../recipients/parse-consent.ts";

/** What the bodies of several endpoints are made of. Clients must expect members beside those of an answer's schema. */

export const count = Type.Integer({ minimum: 0 });
export const time = Type.String({ format: "date-time" });
export const id = Type.String({ format: "uuid" });
/** A string such as this one. */
export const text = (example: string) => Type.String({ examples: [example] });
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const oneOf = <T extends string>(...values: T[]) => Type.Union(values.map((value) => Type.Literal(value)));
/** By channel: each of those that each log has, and `webhook-NAME` for each webhook with a name. */
export const perChannel = <T extends TSchema>(schema: T) =>
  Type.Object(Object.fromEntries(CHANNELS.map((name) => [name, schema])), { additionalProperties: schema });
/** By channel, of those that were asked for. */
export const perAskedChannel = <T extends TSchema>(schema: T) =>
  Type.Object(Object.fromEntries(CHANNELS.map((name) => [name, Type.Optional(schema)])), {
    additionalProperties: schema,
  });

/** For request bodies. Unknown fields are refused: a mistyped `dry_run` must never send. */
export const closed = { additionalProperties: false };

/** A pattern: more than white space. */
export const TEXT = "\\S";

const consentTime = Type.String({
  maxLength: CONSENT_TIME_CHARS_MAX,
  description: "A day, or a time with its offset (ISO 8601); not in the future.",
  examples: ["2025-03-02", "2025-03-02T10:15:00+01:00"],
});
const consentSource = Type.String({
  maxLength: CONSENT_SOURCE_CHARS_MAX,
  description: "Where: the http(s) address of a form, or a few words.",
  examples: ["https://shop.example/form", "trade fair"],
});
const consentText = Type.String({
  maxLength: CONSENT_TEXT_CHARS_MAX,
  description: "The wording that was agreed to, or its version.",
  examples: ["Yes, send me news (version 3)"],
});

/** What a row of a list, or a record of consent, says of a recipient's consent. */
export const consentMembers = {
  basis: Type.Optional(basis),
  consent_at: Type.Optional(consentTime),
  consent_source: Type.Optional(consentSource),
  consent_text: Type.Optional(consentText),
  tracking: Type.Optional(tracking),
  tracking_at: Type.Optional(consentTime),
  tracking_source: Type.Optional(consentSource),
  tracking_text: Type.Optional(consentText),
};
