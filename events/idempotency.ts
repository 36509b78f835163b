import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/** The first answer to a request with an `Idempotency-Key`, given again to every repeat. */
export const RequestAnswered = defineEvent(
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
