import { Type } from "@sinclair/typebox";
import { webhookChannel } from "./channel-and-lane-names.ts";
import { defineEvent } from "./define-event.ts";

const closed = { additionalProperties: false };

/** Channel of the webhook; absent for the unnamed one. */
const channel = Type.Optional(webhookChannel);

/**
 * Event: from the next position on the webhook carries events of these types and no others, so that its pending events
 * follow from the log alone.
 */
export const WebhookSubscribed = defineEvent(
  "WebhookSubscribed",
  Type.Object(
    {
      channel,
      types: Type.Array(Type.String(), { minItems: 1 }),
      /**
       * Keyed hash of the webhook's URL. Another hash than before shows that the URL has changed. The URL itself is not
       * recorded, because it may hold a credential.
       */
      receiver: Type.String(),
      /** Filter expression that skips some of the subscribed events when they are dispatched. */
      filter: Type.Optional(Type.String()),
    },
    closed,
  ),
);

/** Event: from the next position on the webhook carries no events. */
export const WebhookUnsubscribed = defineEvent("WebhookUnsubscribed", Type.Object({ channel }, closed));
