import { Type } from "@sinclair/typebox";
import { webhookChannel } from "./channel.ts";
import { defineEvent } from "./event.ts";

const closed = { additionalProperties: false };

/** Absent: the webhook without a name. */
const channel = Type.Optional(webhookChannel);

/**
 * From the next position on the webhook carries events of these types, and of no other: what is pending for it follows
 * from the log alone. `receiver`: a keyed hash of the address, which shows when it is another one. `filter`: the
 * expression that skips some of them when they are dispatched.
 */
export const WebhookSubscribed = defineEvent(
  "WebhookSubscribed",
  Type.Object(
    {
      channel,
      types: Type.Array(Type.String(), { minItems: 1 }),
      receiver: Type.String(),
      filter: Type.Optional(Type.String()),
    },
    closed,
  ),
);

/** From the next position on the webhook carries nothing. */
export const WebhookUnsubscribed = defineEvent("WebhookUnsubscribed", Type.Object({ channel }, closed));
