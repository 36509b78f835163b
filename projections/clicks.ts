import type { Projection } from "./projection.ts";

export interface LinkClicks {
  clicks: number;
  bots: number;
  first: string;
  last: string;
}

/** Clicks of each link, people and bots apart. Links beyond the limit are counted together. */
export interface Clicks {
  total: number;
  bots: number;
  /** `domain/short_code` -> its clicks, the least recently clicked first. */
  links: Map<string, LinkClicks>;
  /** Clicks of links that fell out of `links`. */
  others: { clicks: number; bots: number };
}

/** Links told apart; keeps the memory bounded however many links are posted. */
export const LINKS_MAX = 10_000;

export const clicks: Projection<Clicks> = {
  name: "clicks",
  version: 1,
  types: ["LinkClicked"],
  initial: () => ({ total: 0, bots: 0, links: new Map(), others: { clicks: 0, bots: 0 } }),
  evolve(state, event) {
    if (event.type !== "LinkClicked") return state;
    const { bot, domain, short_code } = event.data;
    const key = `${domain}/${short_code}`;
    const link = state.links.get(key) ?? { clicks: 0, bots: 0, first: event.time, last: event.time };
    if (bot) {
      state.bots++;
      link.bots++;
    } else {
      state.total++;
      link.clicks++;
    }
    link.last = event.time;
    // Deleting first moves the link to the end: the Map's order is the order of the last click.
    state.links.delete(key);
    state.links.set(key, link);
    if (state.links.size > LINKS_MAX) dropOldest(state);
    return state;
  },
};

function dropOldest(state: Clicks): void {
  for (const [key, link] of state.links) {
    state.others.clicks += link.clicks;
    state.others.bots += link.bots;
    state.links.delete(key);
    return;
  }
}
