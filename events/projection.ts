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
