import { NETWORKS, type Network } from "./network.ts";

/** What happens on the way, at any network: to the connection, or to the answer's bytes. */
export const TRANSPORT_FAULTS = [
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

/** What any of the networks may answer instead of doing what was asked. */
export const ANSWER_FAULTS = ["429", "500", "502_html", "token_revoked"] as const;

/** What only some of them answer. */
export const ACCOUNT_FAULTS = {
  x: ["credits_depleted", "usage_capped", "sender_restricted", "client_forbidden", "over_capacity", "repeated_cursor"],
  meta: [],
  slack: ["channel_archived", "action_prohibited"],
  discord: ["webhook_deleted"],
  google_chat: ["space_deleted"],
  teams: ["workflow_deleted", "workflow_off"],
  telegram: ["channel_archived", "bot_blocked"],
  line: ["monthly_limit"],
  whatsapp: ["window_closed", "account_locked"],
} as const satisfies Record<Network, readonly string[]>;

export type FaultKind =
  (typeof TRANSPORT_FAULTS)[number] | (typeof ANSWER_FAULTS)[number] | (typeof ACCOUNT_FAULTS)[Network][number];

export interface Fault {
  readonly network: Network;
  readonly kind: FaultKind;
  /** Requests it still hits; undefined: until it is switched off. */
  readonly count?: number;
  /** Only requests whose path contains this. */
  readonly path?: string;
  /** Seconds, for a 429; undefined: it comes without. */
  readonly retryAfter?: number;
  /** `Retry-After` comes as a date, as some proxies write it. */
  readonly asDate?: true;
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
}

/** A state of X's account does not show everywhere: tokens are still given out, and only messages are restricted. */
const SHOWS_AT: Partial<Record<FaultKind, RegExp>> = {
  sender_restricted: /\/messages$/,
  credits_depleted: /^(?!\/x\/2\/oauth2\/)/,
  client_forbidden: /^(?!\/x\/2\/oauth2\/)/,
  over_capacity: /^(?!\/x\/2\/oauth2\/)/,
  usage_capped: /^(?!\/x\/2\/oauth2\/)/,
  token_revoked: /^(?!\/x\/2\/oauth2\/)/,
};

export function faultKindsOf(network: Network): readonly FaultKind[] {
  return [...TRANSPORT_FAULTS, ...ANSWER_FAULTS, ...ACCOUNT_FAULTS[network]];
}

export function createFaultBoard(): FaultBoard {
  let faults: Fault[] = [];
  return {
    add(fault) {
      if (!faultKindsOf(fault.network).includes(fault.kind)) throw new RangeError(`${fault.network} has no such fault`);
      faults.push(fault);
    },
    clear(network, kind) {
      const stays = (fault: Fault): boolean =>
        (network !== undefined && fault.network !== network) || (kind !== undefined && fault.kind !== kind);
      faults = faults.filter(stays);
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
  };
}

function hits({ kind, path = "" }: Fault, requested: string): boolean {
  return requested.includes(path) && (SHOWS_AT[kind]?.test(requested) ?? true);
}

/** Checks what came over HTTP; undefined when it is no fault. */
export function parseFault(value: Readonly<Record<string, unknown>>): Fault | undefined {
  const { count, path, retryAfter, asDate } = value;
  const network = NETWORKS.find((name) => name === value["network"]);
  const kind = network && faultKindsOf(network).find((name) => name === value["kind"]);
  if (network === undefined || kind === undefined) return undefined;
  if (count !== undefined && !(typeof count === "number" && Number.isInteger(count) && count > 0)) return undefined;
  if (path !== undefined && typeof path !== "string") return undefined;
  if (retryAfter !== undefined && typeof retryAfter !== "number") return undefined;
  if (asDate !== undefined && asDate !== true) return undefined;
  return {
    network,
    kind,
    ...(count === undefined ? {} : { count }),
    ...(path === undefined ? {} : { path }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(asDate === undefined ? {} : { asDate }),
  };
}
