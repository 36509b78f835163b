import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";
import { ERASED, erasedPerson, withPersonal } from "./declare-personal-members.ts";
import { recipient, type Recipient } from "./outreach.ts";

const closed = { additionalProperties: false };

const authenticationsFailed = defineEvent(
  "AuthenticationsFailed",
  Type.Object(
    {
      /** Network address that sent the wrong tokens; absent if several addresses are counted together. */
      address: Type.Optional(Type.String()),
      addresses: Type.Integer(),
      /** Number of wrong tokens that were answered with 401. The tokens themselves are not recorded. */
      failed: Type.Integer(),
      /**
       * Number of further wrong tokens that were answered with 429, because an address gets at most ten answers with
       * 401 a minute.
       */
      turned_away: Type.Integer(),
      /** Time at which the first of the counted requests with a wrong API token arrived. */
      since: Type.String(),
      /** Time of the last wrong API token that the event counts. */
      until: Type.String(),
    },
    closed,
  ),
);

/** Event: wrong API tokens came within a minute, from one address or from several that are counted together. */
export const AuthenticationsFailed = withPersonal(authenticationsFailed, {
  owner: ({ address }: { address?: string }) => ({ kind: "click", ip: address }),
  members: ["address"],
  inFolds: false,
  erased: () => ({ address: ERASED }),
});

/**
 * Event: an API token was used for the first time on that UTC day. `token_id` identifies the token without disclosing
 * it.
 */
export const TokenUsed = defineEvent(
  "TokenUsed",
  Type.Object({ name: Type.String(), token_id: Type.String(), day: Type.String() }, closed),
);

/**
 * Event: the master key, which encrypts the secrets at rest, was replaced. `from` and `to` are ids that tell keys apart
 * and disclose nothing else.
 */
export const KeyRotated = defineEvent("KeyRotated", Type.Object({ from: Type.String(), to: Type.String() }, closed));

/** Kind of personal data that was read, no matter if a console page, the API or a command showed it. */
export const readResource = Type.Union([
  Type.Literal("overview"),
  Type.Literal("run"),
  Type.Literal("recipients"),
  Type.Literal("recipient"),
  Type.Literal("link"),
  Type.Literal("deliveries"),
  Type.Literal("results"),
  Type.Literal("log"),
  Type.Literal("event"),
  Type.Literal("search"),
  Type.Literal("export"),
  Type.Literal("suppressions"),
  Type.Literal("stream"),
  Type.Literal("evidence"),
  Type.Literal("preview"),
]);
export type ReadResource = Static<typeof readResource>;

/** Event: a caller was about to see personal data. The event does not contain that data. */
export const PersonalDataRead = withPersonal(
  defineEvent(
    "PersonalDataRead",
    Type.Object(
      {
        resource: readResource,
        /** Recipient whose data was read; absent if the read concerns no single recipient. */
        recipient: Type.Optional(recipient),
        /** Names of the filters that selected the data, without their values. */
        filters: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
        /** Number of records that were read; absent if it was not known beforehand. */
        records: Type.Optional(Type.Integer()),
      },
      closed,
    ),
  ),
  {
    owner: ({ recipient: read }: { recipient?: Recipient }) => ({ kind: "person", ...read }),
    members: ["recipient"],
    inFolds: true,
    erased: (mark) => ({ recipient: { id: erasedPerson(mark), username: erasedPerson(mark) } }),
  },
);
