import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

const closed = { additionalProperties: false };

/** Refs named in one event, which may be at most 256 KiB long. */
export const KEYS_PER_EVENT_MAX = 4_000;

/** Why personal data is erased: the grounds of GDPR, article 17(1)(a) to (e). */
export const erasureGround = Type.Union([
  Type.Literal("no_longer_needed"),
  Type.Literal("consent_withdrawn"),
  Type.Literal("objection"),
  Type.Literal("unlawful"),
  Type.Literal("legal_obligation"),
]);

/** A closed set, so that no name of a person gets into the log in the clear. */
export const erasureRequester = Type.Union([
  Type.Literal("recipient"),
  Type.Literal("representative"),
  Type.Literal("authority"),
  Type.Literal("operator"),
]);

/** Why data is erased, and who asked for it; absent: not said. */
export const erasureReason = {
  ground: Type.Optional(erasureGround),
  requested_by: Type.Optional(erasureRequester),
};
const reasonObject = Type.Object(erasureReason, closed);
export type ErasureReason = Static<typeof reasonObject>;

/**
 * A person is erased: each instance that reads this event deletes `keys` from the key file, and with them all that they
 * encrypt. `hashes`: keyed hashes of the person's names, so that no run contacts them again. `spared`: keys of what was
 * recorded of others under a handle that was the person's in the end. `scope`: only the clicks on their links are erased,
 * since they revoked tracking.
 */
export const PersonForgotten = defineEvent(
  "PersonForgotten",
  Type.Object(
    {
      hashes: Type.Array(Type.String()),
      keys: Type.Array(Type.String()),
      spared: Type.Optional(Type.Array(Type.String())),
      scope: Type.Optional(Type.Literal("tracking")),
      ...erasureReason,
    },
    closed,
  ),
);

/** The keys of all clicks, notifications and messages from before that day (YYYY-MM-DD, UTC) were deleted. */
export const PersonalDataExpired = defineEvent(
  "PersonalDataExpired",
  Type.Object({ before: Type.String(), days: Type.Integer() }, closed),
);

/** An operator let the service go on without the key file `lost`: what it encrypted cannot be read any more. */
export const PersonalKeysLost = defineEvent(
  "PersonalKeysLost",
  Type.Object({ lost: Type.String(), replaced_by: Type.String() }, closed),
);
