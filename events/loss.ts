import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/**
 * An operator let the service go on although the log does not hold what its last checkpoint knew:
 * `lost_tail`, it ended before it; `other_history`, it held another event there; `broken_chain`, an event after it does
 * not fit; `other_log`, the checkpoint is of another log; `unknown`, the checkpoint cannot be read or trusted.
 */
export const LogLossAccepted = defineEvent(
  "LogLossAccepted",
  Type.Object(
    {
      reason: Type.Union([
        Type.Literal("lost_tail"),
        Type.Literal("other_history"),
        Type.Literal("broken_chain"),
        Type.Literal("other_log"),
        Type.Literal("unknown"),
      ]),
      /** What the checkpoint knew; absent when it cannot be trusted. */
      expected_position: Type.Optional(Type.Integer()),
      expected_hash: Type.Optional(Type.String()),
      /** Where the log ended when the loss was accepted: right before this event, but for what others append. */
      found_position: Type.Integer(),
      found_hash: Type.String(),
      /** The first event that does not fit, where one is known. */
      broken_position: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);
