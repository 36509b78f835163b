import { Type } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";

/** Event: the log was verified up to a position. */
export const LogVerified = defineEvent(
  "LogVerified",
  Type.Object(
    {
      position: Type.Integer(),
      /** Hash of the event at `position`. */
      hash: Type.String(),
      /** Number of events that were found good, from the first on. */
      checked: Type.Integer(),
      /**
       * Result of the verification. `whole`: the log's chain and indexes are intact, and it holds all events that its
       * checkpoint covers. `broken`: otherwise.
       */
      result: Type.Union([Type.Literal("whole"), Type.Literal("broken")]),
      /** First problem that the verification found. */
      fault: Type.Optional(Type.String()),
      /** Position of the first event known to be bad, if one is known. */
      broken_position: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);
