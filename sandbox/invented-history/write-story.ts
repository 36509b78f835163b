import { createClicks, OPERATOR_LINKS } from "./clicks.ts";
import { rehearse } from "./dry-run-prices-and-ids.ts";
import { createDeliveries, type StoryDeliveries } from "./write-deliveries.ts";
import type { PendingClick } from "./queue-clicks-for-channels.ts";
import {
  OPERATOR,
  PRODUCT,
  STORY_STREAMS,
  type StoryEvent,
  type StoryLog,
  type StoryMailbox,
} from "./story-log-interface.ts";
import { toImport, makePeople, type StoryPerson } from "./people.ts";
import { planRuns, RECIPIENTS } from "./plan-runs.ts";
import { createAccount, createReplies } from "./replies.ts";
import { createRuns } from "./runs.ts";
import { createSeeded, createTimeline, STORY_DAYS, type StoryClock, type Timeline } from "./timeline.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const SEED = 20_261_126;

/** The story's campaigns: the names and texts of their templates. The runs of `winter` are the newest. */
export const CAMPAIGNS = {
  autumn: {
    name: "Autumn invite",
    text: `Hi {{name|there}}, may we ask what you make with {{product|our tools}}? Our autumn workshops: {{link https://northwind.example/autumn}}
---
Hello {{name|there}}! Your free autumn lesson for {{product|our tools}} is ready: {{link https://northwind.example/autumn}}`,
  },
  winter: {
    name: "Winter guide",
    text: `Hi {{name|there}}, the winter guide to {{product|our tools}} is out: {{link https://northwind.example/winter}} Reply STOP to opt out.
---
Hello {{name|there}}! Your winter guide to {{product|our tools}}: {{link https://northwind.example/winter}} Reply STOP to opt out.`,
  },
};

/** Imports of the list: how many days ago each was, and how many recipients the list has after it. */
const IMPORTS = [
  { daysAgo: 41, until: 400 },
  { daysAgo: 20, until: 599 },
  { daysAgo: 6, until: RECIPIENTS },
];

/** Number of clicks in the last minutes, which messaging has not received yet. */
const LATE_CLICKS = 37;
/** Length of the time, ending now, in which the clicks came that messaging has not received yet. */
const LATE_MS = 11 * MINUTE_MS;

/** Time after midnight at which a bot begins to open a link today. */
const BURST_MS = 3.2 * HOUR_MS;

/** Number of days ago on which the winter campaign's first run was. The operator makes a dry run before it. */
const WINTER_DAYS_AGO = 15;

export interface StoryParts {
  readonly log: StoryLog;
  readonly clock: StoryClock;
  readonly mailbox: StoryMailbox;
  /** Time at which the story ends, in ms since the epoch. */
  readonly now: number;
  /** Time into which the whole story is compressed, in ms. Default: 42 days. */
  readonly spanMs?: number;
}

/** Recipients of the story, for the simulated X. */
export const storyPeople = (): readonly StoryPerson[] => makePeople(planRuns());

/** Performs an act on a day, at a time in ms after midnight. It gets the moment in ms since the epoch. */
type Schedule = (daysAgo: number, ms: number, act: (moment: number) => Promise<unknown>) => void;

/**
 * Writes six busy weeks to a new log: recipients, runs, clicks by people and bots, deliveries that failed, and an
 * authorization that X took back today. The same `now` always gives the same story.
 */
export async function writeStory({ log, clock, mailbox, now, spanMs }: StoryParts): Promise<void> {
  const random = createSeeded(SEED);
  const timeline = createTimeline(clock, now, spanMs);
  const deliveries = createDeliveries(log, timeline, random);
  const clicks = createClicks({ log, timeline, deliveries, random });
  const replies = createReplies(log, timeline, mailbox, random);
  const account = createAccount(log);
  const templates = {
    autumn: log.openTemplate(CAMPAIGNS.autumn.text, CAMPAIGNS.autumn.name),
    winter: log.openTemplate(CAMPAIGNS.winter.text, CAMPAIGNS.winter.name),
  };
  const runs = createRuns({ log, timeline, mailbox, clicks, replies, account, templates });
  const people = storyPeople();
  const at: Schedule = (daysAgo, ms, act) => {
    const moment = timeline.moment(daysAgo, ms);
    timeline.at(moment, () => act(moment));
  };

  const first = STORY_DAYS - 1;
  at(first, 7 * HOUR_MS, (moment) => account.authorize(moment, OPERATOR));
  planOperator(log, people, at);
  let taken = 0;
  for (const run of planRuns()) runs.plan(run, people.slice(taken, (taken += run.fates.length)));
  const isEarlier = ({ daysAgo }: { readonly daysAgo: number }): boolean => daysAgo > WINTER_DAYS_AGO;
  const met = planRuns()
    .filter(isEarlier)
    .flatMap(({ fates }) => fates).length;
  const listed = people.slice(met, IMPORTS.findLast(isEarlier)?.until);
  at(WINTER_DAYS_AGO, 7.7 * HOUR_MS, () => rehearse(log, templates.winter, listed));
  for (let daysAgo = first; daysAgo >= 0; daysAgo--) clicks.planDay(daysAgo);

  const reject = async (moment: number, count: number, decide: (dead: readonly PendingClick[]) => Promise<unknown>) => {
    const rejected = await clicks.test(moment, count);
    deliveries.reject(rejected);
    timeline.at(timeline.after(moment, 2 * HOUR_MS), () => decide(rejected));
  };
  at(21, 15 * HOUR_MS, (moment) => reject(moment, 12, deliveries.retry));
  at(10, 16 * HOUR_MS, (moment) => reject(moment, 4, (dead) => deliveries.discard(dead, "test data")));
  for (const [daysAgo, count] of [
    [24, 4],
    [1, 2],
  ] as const) {
    at(daysAgo, 14.1 * HOUR_MS, async () => deliveries.doubt(count));
    clicks.planRush(count, 2 * MINUTE_MS, timeline.moment(daysAgo, 14.15 * HOUR_MS));
  }

  clicks.planBurst(0, BURST_MS);
  planSlackTrouble(deliveries, timeline, at);
  at(0, 11.52 * HOUR_MS, async () => {
    await account.lose();
    await deliveries.announce("X is no longer authorized: sign in to X again");
  });
  clicks.planRush(LATE_CLICKS, LATE_MS);
  timeline.at(timeline.after(now, -LATE_MS), async () => deliveries.hold("messaging"));
  await timeline.play();
}

/** Plans the acts of an operator: links, imports and suppressions, and the weekly checks of the log. */
function planOperator(log: StoryLog, people: readonly StoryPerson[], at: Schedule): void {
  const outreach = (events: readonly StoryEvent[]) => log.append(STORY_STREAMS.outreach, events, OPERATOR);
  const suppress = (fromEnd: number, reason: string, more: object = {}): StoryEvent => {
    const { id, username } = people.at(-fromEnd)!;
    const recipient = { id, username };
    return { type: "RecipientSuppressed", data: { recipient, reason, hashes: log.hashesOf(recipient), ...more } };
  };

  at(STORY_DAYS - 1, 7.2 * HOUR_MS, () => outreach(OPERATOR_LINKS.map((link) => ({ type: "LinkAdded", data: link }))));
  let imported = 0;
  for (const { daysAgo, until } of IMPORTS) {
    const added = people.slice(imported, until);
    imported = until;
    at(daysAgo, 7.5 * HOUR_MS, (moment) => outreach(added.map((person) => toImport(person, moment - HOUR_MS))));
  }
  const listed = [5, 9, 14, 22, 27];
  at(12, 10 * HOUR_MS, () =>
    outreach(listed.map((fromEnd) => suppress(fromEnd, "list", { reason_text: "unsubscribed" }))),
  );
  at(3, 13 * HOUR_MS, () => outreach([suppress(30, "by_hand")]));
  at(5, 9.4 * HOUR_MS, (moment) => {
    const [since, until] = [moment - MINUTE_MS, moment].map((ms) => new Date(ms).toISOString());
    const data = { address: "198.51.100.9", addresses: 1, failed: 14, turned_away: 0, since, until };
    return log.append(STORY_STREAMS.access, [{ type: "AuthenticationsFailed", data }], PRODUCT);
  });
  for (const daysAgo of [28, 21, 14, 7, 0]) {
    at(daysAgo, 6 * HOUR_MS, async () => {
      const { position, hash } = await log.head();
      const data = { position, hash, checked: position, result: "whole" };
      await log.append(STORY_STREAMS.log, [{ type: "LogVerified", data }], PRODUCT);
    });
  }
}

/**
 * Plans two hours of today in which the simulated Slack receives no messages. The service gives up 25 clicks in this
 * time, and delivers the other waiting clicks at the end.
 */
function planSlackTrouble(deliveries: StoryDeliveries, timeline: Timeline, at: Schedule): void {
  at(0, BURST_MS + 2 * MINUTE_MS, async () => deliveries.hold("chat"));
  at(0, BURST_MS + 3 * MINUTE_MS, (moment) => deliveries.refuse(25, 3, moment));
  for (let minute = 7; minute < 110; minute += 12) {
    at(0, BURST_MS + minute * MINUTE_MS, (moment) => deliveries.openCircuit(timeline.after(moment, MINUTE_MS / 2)));
  }
  at(0, BURST_MS + 110 * MINUTE_MS, () => deliveries.release());
}
