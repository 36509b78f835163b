import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

const closed = { additionalProperties: false };

/**
 * From the next position on the webhook carries events of these types, and of no other: what is pending for it follows
 * from the log alone. `receiver`: a keyed hash of the address, which shows when it is another one.
 */
export const WebhookSubscribed = defineEvent(
  "WebhookSubscribed",
  Type.Object({ types: Type.Array(Type.String(), { minItems: 1 }), receiver: Type.String() }, closed),
);

/** From the next position on the webhook carries nothing. */
export const WebhookUnsubscribed = defineEvent("WebhookUnsubscribed", Type.Object({}, closed));
