import { Type } from "@sinclair/typebox";
import { webhookChannel } from "./channel.ts";
import { defineEvent } from "./event.ts";

const closed = { additionalProperties: false };

/** Absent for the unnamed webhook. */
const channel = Type.Optional(webhookChannel);

/**
 * From the next position on the webhook carries events of these types and no other, so its pending events follow from
 * the log alone.
 */
export const WebhookSubscribed = defineEvent(
  "WebhookSubscribed",
  Type.Object(
    {
      channel,
      types: Type.Array(Type.String(), { minItems: 1 }),
      /** A keyed hash of the address, which shows when the address changes. */
      receiver: Type.String(),
      /** The expression that skips some of the events when they are dispatched. */
      filter: Type.Optional(Type.String()),
    },
    closed,
  ),
);

/** From the next position on the webhook carries nothing. */
export const WebhookUnsubscribed = defineEvent("WebhookUnsubscribed", Type.Object({ channel }, closed));
