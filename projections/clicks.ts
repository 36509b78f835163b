import type { Projection } from "./projection.ts";
import { dropOldest, type Recent } from "./recent-links.ts";
import { linkName } from "./sent-links.ts";

export interface LinkClicks extends Recent {
  clicks: number;
  bots: number;
  first: string;
  last: string;
}

/** Clicks of each link, people and bots apart. Links beyond the limit are counted together. */
export interface Clicks {
  total: number;
  bots: number;
  /** `domain/short_code` -> its clicks. */
  links: Map<string, LinkClicks>;
  /** Clicks of links that fell out of `links`. */
  others: { clicks: number; bots: number };
}

export const clicks: Projection<Clicks> = {
  name: "clicks",
  version: 2,
  types: ["LinkClicked"],
  initial: () => ({ total: 0, bots: 0, links: new Map(), others: { clicks: 0, bots: 0 } }),
  evolve(state, event) {
    if (event.type !== "LinkClicked") return state;
    const { bot, domain, short_code } = event.data;
    const key = linkName(domain, short_code);
    const known = state.links.get(key);
    const link = known ?? { clicks: 0, bots: 0, first: event.time, last: "", last_position: 0 };
    if (bot) {
      state.bots++;
      link.bots++;
    } else {
      state.total++;
      link.clicks++;
    }
    link.last = event.time;
    link.last_position = event.position;
    if (known !== undefined) return state;
    state.links.set(key, link);
    dropOldest(state.links, ({ clicks: people, bots }) => {
      state.others.clicks += people;
      state.others.bots += bots;
    });
    return state;
  },
};
