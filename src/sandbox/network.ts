/** The four networks, and the origin that each one's handlers are written for. */
export const ORIGINS = {
  x: "https://api.x.com",
  "x-web": "https://x.com",
  meta: "https://graph.facebook.com",
  slack: "https://hooks.slack.com",
  telegram: "https://api.telegram.org",
} as const;

export type Origin = keyof typeof ORIGINS;
export type Network = "x" | "meta" | "slack" | "telegram";

export const NETWORKS: readonly Network[] = ["x", "meta", "slack", "telegram"];

export function isOrigin(name: string): name is Origin {
  return Object.hasOwn(ORIGINS, name);
}

/** The network behind an origin: X's web pages and API are one. */
export function networkOf(origin: Origin): Network {
  return origin === "x-web" ? "x" : origin;
}
