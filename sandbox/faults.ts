import { Type, type Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { NETWORKS, type Network } from "./network-origins-and-refusals.ts";
import { refusalsOf, type RefusalKind } from "./refusals.ts";

/** Faults of the transport, which any network may have: of the connection, or of the answer's bytes. */
const TRANSPORT_FAULTS = [
  "timeout_before",
  "timeout_after_delivery",
  "reset_before",
  "reset_after_delivery",
  "cut_body",
  "slow_body",
  "huge_body",
  "invalid_json",
  "redirect",
] as const;

type TransportFault = (typeof TRANSPORT_FAULTS)[number];

/** Faults of X's stream of signals, each of one signal. */
const STREAM_FAULTS = ["stream_drop", "stream_repeat", "stream_reorder", "stream_cut", "stream_disconnect"] as const;

type StreamFault = (typeof STREAM_FAULTS)[number];

/** Faults that only X can have. */
const X_FAULTS = ["repeated_cursor", ...STREAM_FAULTS] as const;

export type FaultKind = TransportFault | (typeof X_FAULTS)[number] | RefusalKind;

export function faultKindsOf(network: Network): readonly FaultKind[] {
  const refusals = Object.keys(refusalsOf(network)) as RefusalKind[];
  return [...TRANSPORT_FAULTS, ...refusals, ...(network === "x" ? X_FAULTS : [])];
}

/** True if the fault is one of the transport, and no answer in the network's own form. */
export function isTransportFault(kind: FaultKind): kind is TransportFault {
  return TRANSPORT_FAULTS.some((known) => known === kind);
}

/** True if the fault changes a signal in X's activity stream, and no answer to a request. */
export function isStreamFault(kind: FaultKind): kind is StreamFault {
  return STREAM_FAULTS.some((known) => known === kind);
}

const FAULT = Type.Object({
  network: Type.Unsafe<Network>(Type.Union(NETWORKS.map((network) => Type.Literal(network)))),
  kind: Type.Unsafe<FaultKind>(Type.String()),
  /** Number of requests that the fault still affects; if absent, all until it is switched off. */
  count: Type.Optional(Type.Integer({ minimum: 1 })),
  /** Text in the path of the requests that the fault affects; if absent, it affects all. */
  path: Type.Optional(Type.String()),
  /** Seconds in the `Retry-After` of a 429; if absent, the answer has no such header. */
  retryAfter: Type.Optional(Type.Number()),
  /** True to send `Retry-After` as a date, as some proxies do. */
  asDate: Type.Optional(Type.Literal(true)),
});

export type Fault = Readonly<Static<typeof FAULT>>;

/** Parses a fault received over HTTP; undefined if it is invalid. */
export function parseFault(value: unknown): Fault | undefined {
  return Value.Check(FAULT, value) && faultKindsOf(value.network).includes(value.kind) ? value : undefined;
}

/** The faults that are switched on, and the requests that they keep waiting. */
export interface FaultBoard {
  /** Switches a fault on. Throws a RangeError for a fault that the network cannot have. */
  add(fault: Fault): void;
  /** Switches off the faults of this network and kind; without arguments, all. */
  clear(network?: Network, kind?: string): void;
  list(): readonly Fault[];
  /**
   * Returns the oldest fault that applies to this request, and uses up one of its `count`. Faults of signals apply to no
   * request, unless `isKind` asks for them.
   */
  take(network: Network, path: string, isKind?: (kind: FaultKind) => boolean): Fault | undefined;
  /** Remembers a request that `fault` keeps waiting, and how to end the wait. Returns a function that forgets it. */
  hold(fault: Fault, end: () => void): () => void;
  /** Ends the waits that faults of this network and kind impose; without arguments, all. */
  release(network?: Network, kind?: string): void;
}

/** Selects faults by network and kind; an undefined field selects all. */
interface Chosen {
  readonly network: Network | undefined;
  readonly kind: string | undefined;
}

function isChosen({ network, kind }: Fault, chosen: Chosen): boolean {
  return network === (chosen.network ?? network) && kind === (chosen.kind ?? kind);
}

export function createFaultBoard(): FaultBoard {
  let faults: Fault[] = [];
  const held = new Set<{ readonly fault: Fault; readonly end: () => void }>();
  return {
    add(fault) {
      if (!faultKindsOf(fault.network).includes(fault.kind)) throw new RangeError(`${fault.network} has no such fault`);
      faults.push(fault);
    },
    clear(network, kind) {
      faults = faults.filter((fault) => !isChosen(fault, { network, kind }));
    },
    list: () => faults,
    take(network, path, isKind = (kind) => !isStreamFault(kind)) {
      const at = faults.findIndex((fault) => fault.network === network && isKind(fault.kind) && hits(fault, path));
      const fault = faults[at];
      if (fault?.count === undefined) return fault;
      if (fault.count > 1) faults[at] = { ...fault, count: fault.count - 1 };
      else faults.splice(at, 1);
      return fault;
    },
    hold(fault, end) {
      const waiting = { fault, end };
      held.add(waiting);
      return () => void held.delete(waiting);
    },
    release(network, kind) {
      for (const waiting of held) {
        if (!isChosen(waiting.fault, { network, kind })) continue;
        held.delete(waiting);
        waiting.end();
      }
    },
  };
}

const OUTSIDE_OAUTH = /^(?!\/x\/2\/oauth2\/)/;

/**
 * Fault of X -> the paths where it shows: these faults do not affect the issue of tokens, and `sender_restricted` only
 * affects messages.
 */
const SHOWS_AT: Partial<Record<FaultKind, RegExp>> = {
  sender_restricted: /\/messages$/,
  credits_depleted: OUTSIDE_OAUTH,
  client_forbidden: OUTSIDE_OAUTH,
  over_capacity: OUTSIDE_OAUTH,
  usage_capped: OUTSIDE_OAUTH,
  token_revoked: OUTSIDE_OAUTH,
};

function hits({ kind, path = "" }: Fault, requested: string): boolean {
  return requested.includes(path) && (SHOWS_AT[kind]?.test(requested) ?? true);
}
