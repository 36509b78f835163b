/** Origin of each network's API, for which its handlers are written. X has a second one, for its web pages. */
export const ORIGINS = {
  x: "https://api.x.com",
  "x-web": "https://x.com",
  meta: "https://graph.facebook.com",
  openai: "https://bzr.openai.com",
  snap: "https://tr.snapchat.com",
  slack: "https://hooks.slack.com",
  discord: "https://discord.com",
  google_chat: "https://chat.googleapis.com",
  teams: "https://prod-01.westeurope.logic.azure.com",
  telegram: "https://api.telegram.org",
  line: "https://api.line.me",
  whatsapp: "https://graph.facebook.com",
} as const;

export type Origin = keyof typeof ORIGINS;
export type Network = Exclude<Origin, "x-web">;

export const NETWORKS = Object.keys(ORIGINS).filter((origin) => origin !== "x-web") as readonly Network[];

export function isOrigin(name: string): name is Origin {
  return Object.hasOwn(ORIGINS, name);
}

/** Returns the network of an origin. X's web pages and its API are one network. */
export function networkOf(origin: Origin): Network {
  return origin === "x-web" ? "x" : origin;
}

/** A request that the network refuses because a fault is on. */
export interface Refused {
  /** Seconds in the `Retry-After` of a 429; undefined if it has none. */
  readonly retryAfter: number | undefined;
  readonly path: string;
  /** The sandbox's time, ms since the epoch. */
  readonly now: number;
}

type Refusal = (refused: Refused) => Response;

/** Refusals of a network by kind of fault: the kinds that all networks have, and its own. */
export type Refusals = Readonly<Record<"429" | "500" | "token_revoked", Refusal> & Record<string, Refusal>>;
