import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/** The log was verified up to a position. */
export const LogVerified = defineEvent(
  "LogVerified",
  Type.Object(
    {
      position: Type.Integer(),
      /** Hash of the event at `position`. */
      hash: Type.String(),
      /** Number of events that were found good, from the first on. */
      checked: Type.Integer(),
      /** `whole`: its chain and its indexes are intact, and it holds what its checkpoint knew. `broken`: otherwise. */
      result: Type.Union([Type.Literal("whole"), Type.Literal("broken")]),
      /** The first problem that was found. */
      fault: Type.Optional(Type.String()),
      /** The first position known to be bad, if one is known. */
      broken_position: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);
