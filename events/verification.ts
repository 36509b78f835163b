import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/**
 * The log was verified as it was up to a position: `whole`, its chain and its indexes are, and it holds what the
 * checkpoint beside it knew. `broken`: it is not, or does not; `fault` says what was found first.
 */
export const LogVerified = defineEvent(
  "LogVerified",
  Type.Object(
    {
      position: Type.Integer(),
      /** Of the event at that position. */
      hash: Type.String(),
      /** Events that were found good, from the first on. */
      checked: Type.Integer(),
      result: Type.Union([Type.Literal("whole"), Type.Literal("broken")]),
      fault: Type.Optional(Type.String()),
      /** The first position known to be bad, where one is known. */
      broken_position: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);
