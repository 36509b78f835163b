import type { Channel } from "../networks/network.ts";
import { startDispatcher, type Dispatcher, type DispatcherDeps } from "./dispatcher.ts";

/** The dispatchers of all channels. Disposing it stops them at once: the time to stop in is that of the slowest. */
export interface Dispatchers extends AsyncDisposable {
  readonly all: readonly Dispatcher[];
  /** {@link Dispatcher.holdClicks} of each. */
  holdClicks(): void;
}

export function startDispatchers(channels: readonly Channel[], common: Omit<DispatcherDeps, "channel">): Dispatchers {
  const all = channels.map((channel) => startDispatcher({ ...common, channel }));
  return {
    all,
    holdClicks() {
      for (const dispatcher of all) dispatcher.holdClicks();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((dispatcher) => dispatcher[Symbol.asyncDispose]()));
    },
  };
}
