import type { Projection } from "./projection.ts";
import { dropOldest, type Recent } from "./drop-oldest-links.ts";
import { linkKey, linkSpelling } from "./link-keys-and-text-links.ts";

export interface LinkClicks extends Recent {
  clicks: number;
  bots: number;
  first: string;
  last: string;
  /**
   * Other spellings of the link. Older versions of the service recorded the clicks on each spelling in a separate
   * stream. Absent if there are none.
   */
  spellings?: string[];
}

/** Maximum number of spellings kept for one link. Only a defective caller sends more. */
const SPELLINGS_MAX = 20;

/** Clicks of each link, with people and bots counted separately. Links beyond the limit are counted together. */
export interface Clicks {
  total: number;
  bots: number;
  /** Clicks of each link, by the link as `linkKey` writes it. */
  links: Map<string, LinkClicks>;
  /** Clicks of the links that were dropped from `links`, which holds a limited number of them; counted together. */
  others: { clicks: number; bots: number };
}

export const clicks: Projection<Clicks> = {
  name: "clicks",
  version: 3,
  types: ["LinkClicked"],
  initial: () => ({ total: 0, bots: 0, links: new Map(), others: { clicks: 0, bots: 0 } }),
  evolve(state, event) {
    if (event.type !== "LinkClicked") return state;
    const { bot, domain, short_code } = event.data;
    const key = linkKey(domain, short_code);
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
    const spelling = linkSpelling(domain, short_code);
    if (spelling !== key) noteSpelling(link, spelling);
    if (known !== undefined) return state;
    state.links.set(key, link);
    dropOldest(state.links, ({ clicks: people, bots }) => {
      state.others.clicks += people;
      state.others.bots += bots;
    });
    return state;
  },
};

function noteSpelling(link: LinkClicks, spelling: string): void {
  const { spellings = [] } = link;
  if (spellings.length < SPELLINGS_MAX && !spellings.includes(spelling)) link.spellings = [...spellings, spelling];
}

/**
 * Returns the names of the streams that hold the clicks of a link. The first name is made from `link` itself, the
 * others from its other spellings.
 */
export function spellingsOf({ links }: Clicks, link: string): readonly string[] {
  return [link, ...(links.get(link)?.spellings ?? [])];
}
