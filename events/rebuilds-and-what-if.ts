import { Type } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";

/**
 * Event: a projection was folded again from the start of the log while instances kept serving the old state. The new
 * state up to `position` is stored, and each instance loads it when it reads this event.
 */
export const ProjectionRebuilt = defineEvent(
  "ProjectionRebuilt",
  Type.Object(
    {
      projection: Type.String(),
      /** Version of the projection's code. */
      version: Type.Integer(),
      position: Type.Integer(),
      /** Number of places where the stored state differed from the rebuilt one; absent if no state was stored. */
      differences: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);

/**
 * Event: a caller asked how the recorded runs, up to `position`, would have gone under other sending rules. `rules`:
 * names of the rules that the caller changed, without their values. No more of the question or its answer is recorded.
 */
export const WhatIfAsked = defineEvent(
  "WhatIfAsked",
  Type.Object({ rules: Type.Array(Type.String()), position: Type.Integer() }, { additionalProperties: false }),
);
