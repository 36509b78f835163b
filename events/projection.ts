import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/**
 * A projection was folded anew from the start of the log, beside whatever serves it: its state up to `position` is kept,
 * and everybody who holds one takes that over when they come to this event.
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
