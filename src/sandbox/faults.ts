import { NETWORKS, type Network } from "./network.ts";

/** What happens on the way: to the connection, or to the answer's bytes. */
export const TRANSPORT_FAULTS = [
  "timeout_before",
  "timeout_after_delivery",
  "reset_before",
  "reset_after_delivery",
  "slow_body",
  "huge_body",
  "invalid_json",
] as const;

/** What the network itself answers instead of doing what was asked. */
export const ANSWER_FAULTS = [
  "429",
  "500",
  "502_html",
  "credits_depleted",
  "usage_capped",
  "sender_restricted",
  "channel_archived",
  "token_revoked",
] as const;

export const FAULT_KINDS = [...TRANSPORT_FAULTS, ...ANSWER_FAULTS];
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly network: Network;
  readonly kind: FaultKind;
  /** Requests it still hits; undefined: until it is switched off. */
  readonly count?: number;
  /** Only requests whose path contains this. */
  readonly path?: string;
  /** Seconds, for a 429; undefined: it comes without. */
  readonly retryAfter?: number;
}

/** The faults that are switched on. */
export interface FaultBoard {
  add(fault: Fault): void;
  clear(network?: Network): void;
  list(): readonly Fault[];
  /** The fault that hits this request, counted down. */
  take(network: Network, path: string): Fault | undefined;
}

export function createFaultBoard(): FaultBoard {
  let faults: Fault[] = [];
  return {
    add: (fault) => void faults.push(fault),
    clear: (network) => {
      faults = network === undefined ? [] : faults.filter((fault) => fault.network !== network);
    },
    list: () => faults,
    take(network, path) {
      const at = faults.findIndex((fault) => fault.network === network && path.includes(fault.path ?? ""));
      const fault = faults[at];
      if (fault?.count === undefined) return fault;
      if (fault.count > 1) faults[at] = { ...fault, count: fault.count - 1 };
      else faults.splice(at, 1);
      return fault;
    },
  };
}

/** Checks what came over HTTP; undefined when it is no fault. */
export function parseFault(value: unknown): Fault | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { network, kind, count, path, retryAfter } = value as Partial<Record<keyof Fault, unknown>>;
  const knownNetwork = NETWORKS.find((name) => name === network);
  const knownKind = FAULT_KINDS.find((name) => name === kind);
  if (knownNetwork === undefined || knownKind === undefined) return undefined;
  return {
    network: knownNetwork,
    kind: knownKind,
    ...(typeof count === "number" && count > 0 ? { count } : {}),
    ...(typeof path === "string" ? { path } : {}),
    ...(typeof retryAfter === "number" ? { retryAfter } : {}),
  };
}
