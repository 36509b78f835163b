import { createRecorded } from "../record-received.ts";

export interface Subscription {
  readonly subscription_id: string;
  readonly event_type: string;
  readonly filter: Readonly<Record<string, string>>;
  readonly tag?: string;
  readonly created_at: string;
  readonly updated_at: string;
}

/** Damage of a signal on its way, as the faults of these names say. */
export type Damage = "stream_drop" | "stream_repeat" | "stream_reorder" | "stream_cut" | "stream_disconnect";

/**
 * The sandbox's record of one notification by X about account activity. `connections`: number of open connections to
 * which the sandbox wrote the whole notification.
 */
interface Signal {
  readonly type: string;
  /** Id of the message, if the signal has one. */
  readonly id: string | undefined;
  readonly connections: number;
}

export interface Connection {
  write(text: string): void;
  /** Ends the connection: in order, or by a broken line. */
  end(how: "end" | "cut"): void;
}

/** Creates the state of the Activity API. `damage` returns the fault that the next signal suffers. */
export function createActivity(damage: () => string | undefined) {
  return {
    damage: damage as () => Damage | undefined,
    subscriptions: new Map<string, Subscription>(),
    connections: new Set<Connection>(),
    /** Times until which the connections that clients have closed still count, in real ms since the epoch. */
    ghosts: [] as number[],
    signals: createRecorded<Signal>(),
    /** Signal that a fault holds back until the next one was written. */
    late: undefined as string | undefined,
  };
}
