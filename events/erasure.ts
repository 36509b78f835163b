import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";

const closed = { additionalProperties: false };

/** Maximum number of encryption keys named in one event, which may be at most 256 KiB long. */
export const KEYS_PER_EVENT_MAX = 4_000;

/** Why personal data is erased: the grounds of GDPR, article 17(1)(a) to (e). */
export const erasureGround = Type.Union([
  Type.Literal("no_longer_needed"),
  Type.Literal("consent_withdrawn"),
  Type.Literal("objection"),
  Type.Literal("unlawful"),
  Type.Literal("legal_obligation"),
]);

/** Party that asked for the erasure. A closed set, so that no person's name gets into the log in the clear. */
export const erasureRequester = Type.Union([
  Type.Literal("recipient"),
  Type.Literal("representative"),
  Type.Literal("authority"),
  Type.Literal("operator"),
]);

/** Why data is erased, and who asked for it; absent if not stated. */
export const erasureReason = {
  ground: Type.Optional(erasureGround),
  requested_by: Type.Optional(erasureRequester),
};
const reasonObject = Type.Object(erasureReason, closed);
export type ErasureReason = Static<typeof reasonObject>;

/**
 * Event: a recipient is erased. Each instance that reads it deletes the encryption keys `keys` from the key store, and
 * thereby all data that they encrypt.
 */
export const PersonForgotten = defineEvent(
  "PersonForgotten",
  Type.Object(
    {
      /** Keyed hashes of the recipient's names, so that no run contacts them again. */
      hashes: Type.Array(Type.String()),
      keys: Type.Array(Type.String()),
      /**
       * Encryption keys that are kept although they were made under one of the recipient's handles: they encrypt data
       * of other people who had that handle earlier.
       */
      spared: Type.Optional(Type.Array(Type.String())),
      /** Present if only the clicks on the recipient's links are erased, because the recipient revoked tracking. */
      scope: Type.Optional(Type.Literal("tracking")),
      ...erasureReason,
    },
    closed,
  ),
);

/**
 * Event: the encryption keys of all clicks, notifications and messages from before that day (YYYY-MM-DD, UTC) were
 * deleted.
 */
export const PersonalDataExpired = defineEvent(
  "PersonalDataExpired",
  Type.Object({ before: Type.String(), days: Type.Integer() }, closed),
);

/**
 * Event: an operator let the service continue without the key file `lost`. Data that its keys encrypted can no longer
 * be read.
 */
export const PersonalKeysLost = defineEvent(
  "PersonalKeysLost",
  Type.Object({ lost: Type.String(), replaced_by: Type.String() }, closed),
);
