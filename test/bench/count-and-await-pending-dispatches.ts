import { type UsualChannel } from "../harness/sample-click.ts";
import type { Server } from "./start-service-process.ts";

/** Delay between two reads of the pending dispatches. */
const LOOK_MS = 5;

/** Resolves when the service has no pending dispatch: all outcomes are durable and folded. */
export async function settled(service: Server): Promise<void> {
  while (Object.values(await pendingOf(service)).some((pending) => pending > 0)) await Bun.sleep(LOOK_MS);
}

/** Returns the number of a service's pending dispatches by channel. */
export async function pendingOf({ url }: Server): Promise<Readonly<Record<UsualChannel, number>>> {
  const answer = await fetch(`${url}/api/health`);
  const { channels } = (await answer.json()) as { channels: Record<UsualChannel, { pending: number }> };
  const { ads, chat, messaging } = channels;
  return { ads: ads.pending, chat: chat.pending, messaging: messaging.pending };
}
