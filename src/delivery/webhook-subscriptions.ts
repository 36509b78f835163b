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
  /** {@link createCredentialHash}: the log shows whether the receiver is another one, and not where it is. */
  readonly hashCredential: (url: Secret) => string;
}

/**
 * Makes the log say what each webhook carries from now on, where that is another thing than before: of several instances
 * with different configurations the one that started last says so. Throws what {@link handle} throws.
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
    // Where nothing changes the log is not even asked.
    if (decide().events.length === 0) continue;
    // A stream of its own: that of the channel moves on with each delivery that another instance makes.
    await handle(deps, STREAMS.webhook(name), decide, { metadata: SERVICE_METADATA });
  }
}

/** What is to be appended for the log to say what is wanted; `undefined`: nothing is carried (pure). */
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

/** As events name a webhook. */
function named(name: WebhookChannel): { readonly channel?: WebhookChannel } {
  return name === "webhook" ? {} : { channel: name };
}
