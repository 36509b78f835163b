import type { Folded } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";

/**
 * Numbers of messages and opt-outs that the log got first in one of two ways: by the network's stream of signals
 * (notifications of messages), or by reading the inbox. Each way has its own object with these numbers.
 */
export interface FoundNews {
  messages: number;
  opt_outs: number;
}

/**
 * State of the network's stream of signals (notifications of new messages), with counts that compare what the stream
 * and the reading of the inbox found first.
 */
export interface Signals {
  /**
   * Time at which the network's stream of notifications of new messages first opened, ISO 8601; null before that. New
   * messages are counted from this time on.
   */
  since: string | null;
  open: boolean;
  /** Time at which `open` or `details` changed last, ISO 8601; null if never. */
  changed_at: string | null;
  /** Refusals of the network, in its words. */
  details: string[];
  by_stream: FoundNews;
  by_reading: FoundNews;
  /**
   * Number of signals about messages in X Chat, which are encrypted. No other reading of the network shows these
   * messages.
   */
  chats: number;
  /**
   * Upper bound of the cost of all notifications of new messages, and of the inbox readings for notifications that were
   * missed, in US dollars.
   */
  usd: number;
}

export const signals: Projection<Signals> = {
  name: "signals",
  version: 1,
  types: ["SignalStreamChanged", "SignalsReceived", "InboxRead", "DirectMessageReceived", "RecipientSuppressed"],
  initial: () => ({
    since: null,
    open: false,
    changed_at: null,
    details: [],
    by_stream: { messages: 0, opt_outs: 0 },
    by_reading: { messages: 0, opt_outs: 0 },
    chats: 0,
    usd: 0,
  }),
  evolve(state, event) {
    evolveSignals(state, event);
    return state;
  },
};

function evolveSignals(state: Signals, event: Folded): void {
  switch (event.type) {
    case "SignalStreamChanged": {
      const { open, details } = event.data;
      if (open) state.since ??= event.time;
      Object.assign(state, { open, details: [...details], changed_at: event.time });
      return;
    }
    case "SignalsReceived":
      state.chats += event.data.chats;
      state.usd += event.data.usage.usd;
      return;
    case "InboxRead":
      state.usd += event.data.usage?.usd ?? 0;
      return;
    case "DirectMessageReceived":
      count(state, event.data.via, "messages");
      return;
    case "RecipientSuppressed":
      if (event.data.reason === "opt_out") count(state, event.data.via, "opt_outs");
      return;
    default:
  }
}

function count(state: Signals, via: "stream" | undefined, news: keyof FoundNews): void {
  if (state.since !== null) (via === "stream" ? state.by_stream : state.by_reading)[news]++;
}
