import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";
import { ERASED, withPersonal } from "./encryption.ts";

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
