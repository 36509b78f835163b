import type { Click, DigestLink, Dispatch } from "../networks/network.ts";

/** Clicks in one message: grouped by link, the most clicked first (pure). `clicks` in the order of the log, not empty. */
export function digestOf(id: string, clicks: readonly Click[]): Dispatch {
  const links = new Map<string, DigestLink>();
  for (const { domain, shortCode, bot, time } of clicks) {
    const key = `${domain}/${shortCode}`;
    const link = links.get(key);
    const counted = { clicks: (link?.clicks ?? 0) + 1, bots: (link?.bots ?? 0) + (bot ? 1 : 0) };
    links.set(key, { domain, shortCode, ...counted, first: link?.first ?? time, last: time });
  }
  return {
    kind: "digest",
    id,
    time: clicks.at(-1)?.time ?? "",
    clicks: clicks.length,
    bots: clicks.filter(({ bot }) => bot).length,
    links: [...links.values()].sort((one, other) => other.clicks - one.clicks),
  };
}
