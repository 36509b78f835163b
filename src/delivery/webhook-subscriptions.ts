import type { DataOf } from "../../events/catalog.ts";
import type { WebhookChannel } from "../../events/channel.ts";
import type { Subscription } from "../../events/dispatches.ts";
import { findChannel, webhooksIn } from "../../projections/deliveries.ts";
import { type NewEvent, SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import { handle, type HandleDeps } from "../log/decide-and-append.ts";
import type { StandardWebhookOptions } from "../networks/standard-webhook.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { Secret } from "../platform/secret.ts";

type WantedWebhook = Pick<StandardWebhookOptions, "name" | "url" | "filter"> & { readonly types: readonly string[] };

interface SubscriptionDeps extends HandleDeps {
  /** {@link createCredentialHash}: the log shows that the receiver has changed, but not its address. */
  readonly hashCredential: (url: Secret) => string;
}

/**
 * Records what each webhook carries from now on, if that has changed. If instances have different configurations, the
 * one that started last decides. Throws what {@link handle} throws.
 */
export async function updateSubscriptions(deps: SubscriptionDeps, wanted: readonly WantedWebhook[]): Promise<void> {
  const states = () => deps.projector.state("deliveries");
  for (const name of new Set([...wanted.map((webhook) => webhook.name), ...webhooksIn(states())])) {
    const webhook = wanted.find((one) => one.name === name);
    const data = webhook && {
      ...named(name),
      types: [...webhook.types],
      receiver: deps.hashCredential(webhook.url),
      ...omitUndefined({ filter: webhook.filter }),
    };
    const decide = () => {
      const current = findChannel(states(), name).lanes.events.subscriptions.at(-1);
      return { events: decideSubscription(name, current, data) };
    };
    // If nothing changes, the log is not read.
    if (decide().events.length === 0) continue;
    // Uses a separate stream, because other instances append each delivery to the channel's stream.
    await handle(deps, STREAMS.webhook(name), decide, { metadata: SERVICE_METADATA });
  }
}

/** Returns the events that make the log match `wanted`; `undefined` means that the webhook carries nothing (pure). */
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

/** The fields by which events name a webhook. */
function named(name: WebhookChannel): { readonly channel?: WebhookChannel } {
  return name === "webhook" ? {} : { channel: name };
}
