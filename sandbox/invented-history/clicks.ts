import type { StoryDeliveries } from "./write-deliveries.ts";
import { STORY_CHANNELS, type PendingClick } from "./queue-clicks-for-channels.ts";
import type { StoryLink, StoryLog, StoryMessage } from "./story-log-interface.ts";
import type { PlannedRun } from "./plan-runs.ts";
import type { Timeline } from "./timeline.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Domain of the short links in the demo's invented history. */
export const STORY_DOMAIN = "go.example";

/** Links that the operator has added: their code, and their share of the clicks by people. */
const LINKS = { pricing: 19, guide: 21, spring: 12, beta: 9, docs: 7, webinar: 5, careers: 3, podcast: 2 };

export const OPERATOR_LINKS: readonly StoryLink[] = Object.keys(LINKS).map((code) => {
  return { domain: STORY_DOMAIN, code, target: `https://northwind.example/${code}?utm_source=x` };
});

const BROWSERS = [
  "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1",
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
  "Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
];
const CRAWLERS = [
  "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
  "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
];
const X_FETCHER = "Twitterbot/1.0";
const BURST_BOT = "SiteProbe/2.1 (+https://siteprobe.example/bot)";

/**
 * Clicks by people on the operator's links: today, yesterday and so on. On all earlier days there are
 * {@link USUAL_CLICKS}.
 */
const NEWEST_DAYS = [50, 120, 105, 100, 45, 60];
const USUAL_CLICKS = 12;
/** Number of clicks by crawlers for each click by a person. */
const CRAWLER_SHARE = 0.12;
/** Share of clicks whose shortener did not send a user agent. */
const NO_AGENT_SHARE = 0.06;

/** Share of recipients who click, by campaign and variant. */
const CLICKED: Readonly<Record<PlannedRun["campaign"], Readonly<Record<string, number>>>> = {
  autumn: { A: 0.18, B: 0.58 },
  winter: { A: 0.34, B: 0.36 },
};
/** Share of messages whose links X fetches itself. */
const FETCHED_SHARE = 0.45;

/** Number of clicks in the burst by one bot. */
const BURST_CLICKS = 1_204;
/** Number of clicks in each append while a bot in the demo's invented history opens one link many times. */
const BURST_AT_ONCE = 14;

/** Request for a short link in the story. */
interface Visit {
  readonly link: StoryLink;
  readonly ip: string;
  readonly agent?: string | undefined;
  readonly bot: boolean;
  /**
   * Code of the recipient's personal link, through which the request came. Absent if the request came through a link
   * that many people share.
   */
  readonly own?: string | undefined;
}

interface ClickParts {
  readonly log: StoryLog;
  readonly timeline: Timeline;
  readonly deliveries: StoryDeliveries;
  readonly random: () => number;
}

export type StoryClicks = ReturnType<typeof createClicks>;

type RecordClicks = (visit: Visit, at: number, count?: number) => Promise<readonly PendingClick[]>;

/** Creates the function that appends `count` equal clicks at once, for the channels to receive. */
function createRecord(log: StoryLog, deliveries: StoryDeliveries): RecordClicks {
  return async ({ link, ip, agent, bot, own }, at, count = 1) => {
    const { domain, code: short_code, target } = link;
    const name = `${domain}/${short_code}`;
    const visitor = bot || agent === undefined ? undefined : await log.placeVisitor(name, { ip, userAgent: agent });
    const known = { ip, ...(agent !== undefined && { user_agent: agent }), bot };
    const counted = visitor !== undefined && { visitor };
    const address = { event: "click", domain, short_code, original_url: target };
    const data = { ...address, ...known, ...counted, channels: [...STORY_CHANNELS] };
    const clicks = Array.from({ length: count }, () => ({ type: "LinkClicked", data }));
    const personal = own === undefined ? [] : [{ type: "PersonalLinkClicked", data: { code: own } }];
    const { first, ids } = await log.append(`link-${name}`, [...clicks, ...personal], "shortener");
    const pending = ids.slice(0, count).map((id, nth): PendingClick => {
      return { position: first + nth, id, bot, hasAgent: agent !== undefined };
    });
    deliveries.take(pending, at);
    return pending;
  };
}

/**
 * Creates the generator of visitors in the demo's invented history: their addresses and browsers, and the operator's
 * links that they open.
 */
function createVisitors(random: () => number) {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
  const address = (): string => `${pick(["203.0.113", "198.51.100", "192.0.2"])}.${1 + Math.floor(random() * 250)}`;
  return {
    person(link: StoryLink, own?: string): Visit {
      return { link, ip: address(), agent: random() < NO_AGENT_SHARE ? undefined : pick(BROWSERS), bot: false, own };
    },
    crawler: (link: StoryLink): Visit => ({ link, ip: address(), agent: pick(CRAWLERS), bot: true }),
    browser: () => pick(BROWSERS),
    link(): StoryLink {
      let place = random() * Object.values(LINKS).reduce((sum, share) => sum + share, 0);
      return OPERATOR_LINKS.find((_, nth) => (place -= Object.values(LINKS)[nth]!) < 0) ?? OPERATOR_LINKS[0]!;
    },
  };
}

/** Creates the part of the story in which people, crawlers and X itself open links. */
export function createClicks({ log, timeline, deliveries, random }: ClickParts) {
  const record = createRecord(log, deliveries);
  const visitors = createVisitors(random);
  const visit = (at: number, wanted: Visit): void => timeline.at(at, () => record(wanted, at));

  /** Returns a time of a day at which people are awake, in ms after midnight. */
  const timeOfDay = (lengthMs: number): number => lengthMs * (1 - (1 - random()) ** 1.4);

  return {
    /** Plans the clicks on the link of a message that X accepted at `at`: X's own fetches, and the recipient's. */
    planVisits(message: StoryMessage, campaign: PlannedRun["campaign"], at: number): void {
      const [link] = message.shared;
      const [own] = message.ownCodes;
      if (link === undefined) return;
      if (random() < FETCHED_SHARE) {
        visit(at + 900, { link, ip: "192.0.2.251", agent: X_FETCHER, bot: true });
        visit(at + 1_600, { link, ip: "192.0.2.252", agent: visitors.browser(), bot: false, own });
      }
      if (random() >= (CLICKED[campaign][message.variant] ?? 0)) return;
      const first = timeline.after(at, MINUTE_MS * (1 + 2_400 * random() ** 4));
      const person = visitors.person(link, own);
      visit(first, person);
      if (random() < 0.2) visit(timeline.after(first, HOUR_MS * (0.1 + 20 * random())), person);
    },
    /** Plans the clicks of one day on the operator's links. */
    planDay(daysAgo: number): void {
      const lengthMs = daysAgo === 0 ? timeline.todayMs : 24 * HOUR_MS;
      const people = NEWEST_DAYS[daysAgo] ?? USUAL_CLICKS;
      for (let nth = 0; nth < people * (1 + CRAWLER_SHARE); nth++) {
        const isPerson = nth < people;
        const link = visitors.link();
        const one = isPerson ? visitors.person(link) : visitors.crawler(link);
        visit(timeline.moment(daysAgo, timeOfDay(lengthMs)), one);
      }
    },
    /** Plans the burst: one bot opens the pricing page's link for nine minutes. */
    planBurst(daysAgo: number, startMs: number): void {
      const link = OPERATOR_LINKS[0]!;
      const rounds = BURST_CLICKS / BURST_AT_ONCE;
      for (let round = 0; round < rounds; round++) {
        const at = timeline.moment(daysAgo, startMs + (round / rounds) * 9 * MINUTE_MS);
        timeline.at(at, () => record({ link, ip: "198.51.100.77", agent: BURST_BOT, bot: true }, at, BURST_AT_ONCE));
      }
      // A few people click while the bot sends its many clicks. In the demo's invented history, the chat channel is
      // down at that time, so it does not receive these clicks at once.
      for (const [nth, code] of ["guide", "spring", "guide"].entries()) {
        const named = OPERATOR_LINKS.find((one) => one.code === code)!;
        visit(timeline.moment(daysAgo, startMs + (2.2 + nth * 0.2) * MINUTE_MS), visitors.person(named));
      }
    },
    /** Plans clicks by people in the time before a moment. */
    planRush(count: number, lengthMs: number, until = timeline.now): void {
      for (let nth = 0; nth < count; nth++) {
        const at = timeline.after(until, -lengthMs * (1 - (nth + 0.5) / count));
        visit(at, visitors.person(visitors.link()));
      }
    },
    /** Records clicks by a test program, to be discarded later. */
    test: (at: number, count: number) =>
      record({ link: OPERATOR_LINKS[4]!, ip: "192.0.2.9", agent: BROWSERS[0], bot: false }, at, count),
  };
}
