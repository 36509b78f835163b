import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/**
 * A projection was rebuilt from the start of the log while instances went on serving it. The state up to `position` is
 * stored, and each instance loads it when it reads this event.
 */
export const ProjectionRebuilt = defineEvent(
  "ProjectionRebuilt",
  Type.Object(
    {
      projection: Type.String(),
      /** Of the projection's code. */
      version: Type.Integer(),
      position: Type.Integer(),
      /** Where the stored state differed from the rebuilt one; absent when there was none to compare with. */
      differences: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);

/**
 * A caller asked what other rules would have done with the log up to `position`. `rules`: names of those that differed,
 * without their values. Nothing else is recorded of the question or its answer.
 */
export const WhatIfAsked = defineEvent(
  "WhatIfAsked",
  Type.Object({ rules: Type.Array(Type.String()), position: Type.Integer() }, { additionalProperties: false }),
);
