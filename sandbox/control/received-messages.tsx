/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Network } from "../network-origins-and-refusals.ts";
import type { World } from "../world.ts";
import { Chat } from "./message-thread.tsx";
import { Conversations } from "./conversations.tsx";
import { arrivedAt, newestMessages } from "./shown-messages.ts";

interface ArrivedProps {
  readonly world: World;
  readonly network: Network;
  /** Maximum number of messages or events to show; for X, of conversations. */
  readonly limit: number;
  /** Maximum number of messages to show in each conversation on X. */
  readonly newest: number;
}

/** Shows the newest messages or events that a network received. */
export function Arrived({ world, network, limit, newest }: ArrivedProps): VNode {
  if (arrivedAt(world, network) === 0) return <p class="empty">No {nounOf(network)} has arrived yet.</p>;
  if (network === "x") return <Conversations x={world.x} limit={limit} newest={newest} />;
  return <Chat network={network} messages={newestMessages(world, network, limit)} />;
}

/** Returns the word for one thing that the network receives: ads networks receive events, all others messages. */
export function nounOf(network: Network): string {
  return network === "meta" || network === "openai" || network === "snap" ? "event" : "message";
}
