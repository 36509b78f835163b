import type { DataOf } from "../../events/catalog.ts";
import type { Subscription } from "../../events/dispatches.ts";
import { SERVICE_METADATA, STREAMS, type NewEvent } from "../log/event-log.ts";
import { handle, type HandleDeps } from "../log/handle.ts";
import type { Secret } from "../platform/secret.ts";

/** What the webhook is configured to carry. */
export interface Wanted {
  readonly url: Secret;
  readonly types: readonly string[];
}

interface SubscriptionDeps extends HandleDeps {
  /** {@link createCredentialHash}: the log shows whether the receiver is another one, and not where it is. */
  readonly hashCredential: (url: Secret) => string;
}

/**
 * Makes the log say what the webhook carries from now on, where that is another thing than before: of several instances
 * with different configurations the one that started last says so. Throws what {@link handle} throws.
 */
export async function updateSubscription(deps: SubscriptionDeps, wanted: Wanted | undefined): Promise<void> {
  const data = wanted && { types: [...wanted.types], receiver: deps.hashCredential(wanted.url) };
  const current = (): Subscription | undefined =>
    deps.projector.state("deliveries").webhook.lanes.events.subscriptions.at(-1);
  // Without a webhook, now and before, the log is not even asked.
  if (decideSubscription(current(), data).length === 0) return;
  const decide = () => ({ events: decideSubscription(current(), data) });
  // A stream of its own: that of the channel moves on with each delivery that another instance makes.
  await handle(deps, STREAMS.webhook, decide, { metadata: SERVICE_METADATA });
}

/** What is to be appended for the log to say what is wanted; `undefined`: nothing is carried (pure). */
export function decideSubscription(
  current: Subscription | undefined,
  wanted: DataOf<"WebhookSubscribed"> | undefined,
): readonly NewEvent[] {
  const types = current?.types ?? [];
  if (wanted === undefined) return types.length === 0 ? [] : [{ type: "WebhookUnsubscribed", data: {} }];
  const isSame = current?.receiver === wanted.receiver && types.join() === wanted.types.join();
  return isSame ? [] : [{ type: "WebhookSubscribed", data: wanted }];
}
