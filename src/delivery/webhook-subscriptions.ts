import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { WebhookChannel } from "../../events/channel-and-lane-names.ts";
import type { Subscription } from "../../events/dispatches-requested-by-events.ts";
import { findChannel, webhooksIn } from "../../projections/deliveries.ts";
import { type NewEvent, SERVICE_METADATA, STREAMS, type StateContext } from "../log/event-log.ts";
import { handle } from "../log/decide-and-append.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { Secret } from "../platform/secret.ts";

interface WantedWebhook {
  readonly name: WebhookChannel;
  readonly url: Secret;
  readonly filter: string | undefined;
  readonly types: readonly string[];
}

/**
 * Appends which event types each webhook carries from now on, if that has changed. If instances have different
 * configurations, the one that started last decides. Throws what {@link handle} throws.
 */
export async function updateSubscriptions(
  context: StateContext,
  wanted: readonly WantedWebhook[],
  /**
   * Hash function of {@link createCredentialHash}: the log shows that a webhook's receiver has changed, but not its
   * address.
   */
  hashCredential: (url: Secret) => string,
): Promise<void> {
  const states = () => context.projector.state("deliveries");
  for (const name of new Set([...wanted.map((webhook) => webhook.name), ...webhooksIn(states())])) {
    const webhook = wanted.find((one) => one.name === name);
    const data = webhook && {
      ...named(name),
      types: [...webhook.types],
      receiver: hashCredential(webhook.url),
      ...omitUndefined({ filter: webhook.filter }),
    };
    const decide = () => {
      const current = findChannel(states(), name).lanes.events.subscriptions.at(-1);
      return { events: decideSubscription(name, current, data) };
    };
    // Decides first by the state in memory, so that the log is not read if nothing changes.
    if (decide().events.length === 0) continue;
    // Uses a separate stream, because other instances append each delivery to the channel's stream.
    await handle(context, STREAMS.webhook(name), decide, { metadata: SERVICE_METADATA });
  }
}

/**
 * Returns the events after which the log records the subscription `wanted` (pure). `wanted` is undefined if the webhook
 * is to post no events.
 */
export function decideSubscription(
  name: WebhookChannel,
  current: Subscription | undefined,
  wanted: DataOf<"WebhookSubscribed"> | undefined,
): readonly NewEvent[] {
  const types = current?.types ?? [];
  if (wanted === undefined) return types.length === 0 ? [] : [{ type: "WebhookUnsubscribed", data: named(name) }];
  const isSame =
    current?.receiver === wanted.receiver && current.filter === wanted.filter && types.join() === wanted.types.join();
  return isSame ? [] : [{ type: "WebhookSubscribed", data: wanted }];
}

/** Returns the fields by which events name a webhook. */
function named(name: WebhookChannel): { readonly channel?: WebhookChannel } {
  return name === "webhook" ? {} : { channel: name };
}
