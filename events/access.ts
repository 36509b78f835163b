import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";
import { ERASED, erasedPerson, withPersonal } from "./encryption.ts";
import { recipient, type Recipient } from "./outreach.ts";

const closed = { additionalProperties: false };

const authenticationsFailed = defineEvent(
  "AuthenticationsFailed",
  Type.Object(
    {
      /** Whose they were; absent where several addresses are summed up. */
      address: Type.Optional(Type.String()),
      addresses: Type.Integer(),
      /** Wrong tokens that got 401. Which they were is not recorded. */
      failed: Type.Integer(),
      /** Further wrong tokens, compared too, that got 429: an address has ten 401 a minute. */
      turned_away: Type.Integer(),
      /** From the first of them to the last one. */
      since: Type.String(),
      until: Type.String(),
    },
    closed,
  ),
);

/** Wrong tokens that came from one address within a minute. */
export const AuthenticationsFailed = withPersonal(authenticationsFailed, {
  owner: ({ address }: { address?: string }) => ({ kind: "click", ip: address }),
  members: ["address"],
  inFolds: false,
  erased: () => ({ address: ERASED }),
});

/** A token was used, for the first time on that day of UTC. `token_id` names it without disclosing it. */
export const TokenUsed = defineEvent(
  "TokenUsed",
  Type.Object({ name: Type.String(), token_id: Type.String(), day: Type.String() }, closed),
);

/** Another master key took the place of the former one. Ids tell keys apart and disclose nothing else. */
export const KeyRotated = defineEvent("KeyRotated", Type.Object({ from: Type.String(), to: Type.String() }, closed));

/** What of the personal data was read: a page of the console, an answer of the API, or the output of a command. */
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

/**
 * A caller was about to see personal data, and nothing of that data. `recipient`: the one that was read about; absent: no
 * single one. `filters`: names of the filters that chose what was read, without their values. `records`: how many; absent:
 * not known beforehand.
 */
export const PersonalDataRead = withPersonal(
  defineEvent(
    "PersonalDataRead",
    Type.Object(
      {
        resource: readResource,
        recipient: Type.Optional(recipient),
        filters: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
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
