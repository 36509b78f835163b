import { Type, type Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { NETWORKS, type Network } from "./network.ts";
import { refusalsOf, type RefusalKind } from "./refusals.ts";

/** What happens on the way, at any network: to the connection, or to the answer's bytes. */
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

export type FaultKind = TransportFault | "repeated_cursor" | RefusalKind;

export function faultKindsOf(network: Network): readonly FaultKind[] {
  const refusals = Object.keys(refusalsOf(network)) as RefusalKind[];
  return [...TRANSPORT_FAULTS, ...refusals, ...(network === "x" ? (["repeated_cursor"] as const) : [])];
}

/** Whether it is a fault of the way, not an answer of the network. */
export function isTransportFault(kind: FaultKind): kind is TransportFault {
  return TRANSPORT_FAULTS.some((known) => known === kind);
}

const FAULT = Type.Object({
  network: Type.Unsafe<Network>(Type.Union(NETWORKS.map((network) => Type.Literal(network)))),
  kind: Type.Unsafe<FaultKind>(Type.String()),
  /** Requests it still hits; absent: until it is switched off. */
  count: Type.Optional(Type.Integer({ minimum: 1 })),
  /** Only requests whose path contains this. */
  path: Type.Optional(Type.String()),
  /** Seconds, for a 429; absent: it comes without. */
  retryAfter: Type.Optional(Type.Number()),
  /** `Retry-After` comes as a date, as some proxies write it. */
  asDate: Type.Optional(Type.Literal(true)),
});

export type Fault = Readonly<Static<typeof FAULT>>;

/** Checks what came over HTTP; undefined when it is no fault. */
export function parseFault(value: unknown): Fault | undefined {
  return Value.Check(FAULT, value) && faultKindsOf(value.network).includes(value.kind) ? value : undefined;
}

/** The faults that are switched on. */
export interface FaultBoard {
  /** Throws a RangeError for a fault that the network cannot have. */
  add(fault: Fault): void;
  /** Without arguments: all of them. */
  clear(network?: Network, kind?: string): void;
  list(): readonly Fault[];
  /** The oldest fault that hits this request, counted down. */
  take(network: Network, path: string): Fault | undefined;
  /** Remembers a request that `fault` keeps waiting, and how to end that. Gives what forgets it. */
  hold(fault: Fault, end: () => void): () => void;
  /** Ends what is kept waiting. Without arguments: all of it. */
  release(network?: Network, kind?: string): void;
}

/** Which faults are meant; without both, all are. */
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
    take(network, path) {
      const at = faults.findIndex((fault) => fault.network === network && hits(fault, path));
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

/** A state of X's account does not show everywhere: tokens are still given out, and only messages are restricted. */
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
