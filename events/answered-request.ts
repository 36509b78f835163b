import { Type } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";
import { ERASED, withPersonal } from "./declare-personal-members.ts";

/**
 * Event with the first answer to a request that had an `Idempotency-Key`; every repeat of the request gets the same
 * answer.
 */
const requestAnswered = defineEvent(
  "RequestAnswered",
  Type.Object(
    {
      /** SHA-256 of the request body. */
      digest: Type.String(),
      status: Type.Integer(),
      headers: Type.Record(Type.String(), Type.String()),
      body: Type.String(),
    },
    { additionalProperties: false },
  ),
);

export const RequestAnswered = withPersonal(requestAnswered, {
  owner: () => ({ kind: "answer" }),
  members: ["body"],
  inFolds: false,
  erased: () => ({ body: ERASED }),
});
