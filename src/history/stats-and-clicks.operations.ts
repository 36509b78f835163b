import { Type } from "@sinclair/typebox";
import { countCampaigns, noMessages } from "../../projections/message-totals.ts";
import { labelOf, periodsOf, type PeriodsQuery } from "../../projections/sum-quarters-to-hours-and-days.ts";
import { LINK_CHARACTERS_MAX } from "../../projections/link-keys-and-text-links.ts";
import { noClicks, type SuspectedCounts } from "../../projections/clicks-suspected-as-networks-own.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { countLink, listLinkCounts } from "./count-link-clicks-and-outcomes.ts";
import { parseLink, streamsOfLink } from "./history-of-recipient-link-or-event.ts";
import { count, oneOf, text, time } from "../platform/common-schemas.ts";
import { operation, refusal } from "../platform/operation.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  resolveEnd,
  toMomentJson,
  type LogReader,
} from "../projector/operation-states-as-of.ts";
import type { SomeStates } from "../../projections/all.ts";

const SHOWN = { day: 30, hour: 48 } as const;

const PERIOD_COUNTS = ["sent", "skipped", "failed", "clicks", "suspected", "bots"] as const;

const countedPeriod = Type.Object({
  start: time,
  sent: count,
  skipped: count,
  failed: count,
  clicks: Type.Integer({ minimum: 0, description: "Clicks of people, suspected ones included." }),
  suspected: count,
  bots: count,
});

interface StatsReader extends LogReader {
  readonly config: { readonly outreach: { readonly timezone: string } };
}

export const showStats = operation({
  name: "stats",
  id: "getOutreachStats",
  tag: "outreach",
  access: ["strict", "read"],
  summary: "Show the all-time counts, also by day, hour or campaign.",
  description: `Counted from the log; dry runs do not count. By day or hour: messages, and clicks of people and of bots, in each of the last ${SHOWN.day} days or ${SHOWN.hour} hours of QUOTA_TIMEZONE. For outcomes by variant, run or link, see the results.`,
  personalRead: false,
  input: {
    by: Type.Optional(
      Type.Union(oneOf("day", "hour", "campaign").anyOf, { title: "what", description: "What to group by" }),
    ),
    ...asOfInput,
  },
  output: {
    sent: count,
    skipped: count,
    failed: count,
    periods: Type.Optional(Type.Array(countedPeriod, { description: "With `by`: the oldest first." })),
    campaigns: Type.Optional(
      Type.Array(Type.Object({ campaign: text("spring"), sent: count, skipped: count, failed: count }), {
        description: "By campaign: `default` first.",
      }),
    ),
    timezone: Type.Optional(Type.String({ description: "With `by`: the zone of the periods.", examples: ["UTC"] })),
    ...asOf,
  },
  async run({ config, clock, at }: StatsReader, { by, as_of }) {
    if (by === undefined) {
      const found = await at(as_of, "stats");
      return { ...pickStats(found.states), as_of: toMomentJson(found) };
    }
    if (by === "campaign") {
      const found = await at(as_of, "stats");
      const campaigns = countCampaigns(found.states.stats);
      return { ...pickStats(found.states), campaigns, as_of: toMomentJson(found) };
    }
    const found = await at(as_of, "stats", "timeline", "suspected");
    const { timezone } = config.outreach;
    const periods = countPeriods(found.states, {
      unit: by,
      count: SHOWN[by],
      until: resolveEnd(found, clock()),
      timezone,
    });
    return {
      ...pickStats(found.states),
      periods: periods.map(({ start, ...counts }) => ({ start: isoTime(start), ...counts })),
      timezone,
      as_of: toMomentJson(found),
    };
  },
  table({ periods, campaigns, timezone = "UTC" }, { by: unit = "day" }) {
    if (campaigns !== undefined) {
      const rows = campaigns.map(({ campaign, sent, skipped, failed }) => [campaign, sent, skipped, failed]);
      return { head: ["campaign", "sent", "skipped", "failed"], rows };
    }
    if (periods === undefined || unit === "campaign") return undefined;
    return {
      head: [unit, ...PERIOD_COUNTS],
      rows: periods.map(({ start, ...counts }) => [
        labelOf(Date.parse(start), { unit, timezone }),
        ...PERIOD_COUNTS.map((kind) => counts[kind]),
      ]),
    };
  },
  text({ sent, skipped, failed, periods, timezone, as_of }) {
    if (periods !== undefined) return `(${timezone}, ${describeMomentJson(as_of)})\n`;
    return `sent ${sent}, skipped ${skipped}, failed ${failed} (${describeMomentJson(as_of)})\n`;
  },
  examples: ["--by day --as-of 2026-11-21"],
});

function pickStats({ stats: { sent, skipped, failed } }: SomeStates<"stats">) {
  return { sent, skipped, failed };
}

/** Counts messages and clicks in each day or hour. `start`: beginning of the period, in ms since 1970. */
function countPeriods({ timeline, suspected }: SomeStates<"timeline" | "suspected">, query: PeriodsQuery) {
  const messages = periodsOf(timeline.quarters, query, noMessages);
  const clicks = periodsOf(suspected.quarters, query, noClicks);
  return messages.map(({ start, counts: { sent, skipped, failed } }, at) => {
    const { clicks: people = 0, suspected: some = 0, bots = 0 } = clicks[at]?.counts ?? {};
    return { start, sent, skipped, failed, clicks: people, suspected: some, bots };
  });
}

const linkCounts = Type.Object({
  link: text("go.example/welcome"),
  clicks: Type.Integer({ minimum: 0, description: "Clicks of people, suspected ones included." }),
  bots: count,
  suspected: count,
  first: time,
  last: time,
});

export const showClicks = operation({
  name: "clicks",
  id: "listClicks",
  tag: "tracking",
  access: ["session", "read"],
  summary: "Show the clicks of all links or of one.",
  description:
    "Clicks of people and of bots; links with the most clicks of people come first. If there are very many links, only those clicked last are listed separately; a link given by name is counted from all of its clicks.\n\nsuspected: the number of clicks of people that are likely X's own. X fetches each link in a direct message, also with the user agents of ordinary browsers: clicks close together within seconds of such a message count as suspected.",
  personalRead: false,
  input: {
    link: Type.Optional(
      Type.String({
        maxLength: LINK_CHARACTERS_MAX,
        description: "One link, as domain/short_code",
        examples: ["go.example/welcome"],
      }),
    ),
    ...asOfInput,
  },
  positional: ["link"],
  output: {
    clicks: count,
    bots: count,
    suspected: count,
    links: Type.Array(linkCounts),
    others: Type.Object(
      { clicks: count, suspected: count, bots: count },
      { description: "Clicks of links that are no longer listed separately." },
    ),
    ...asOf,
  },
  refusals: { unknown_link: refusal("not_found", "No click of that link is in the log.") },
  async run({ store, at }: LogReader, { link: wanted, as_of }) {
    if (wanted === undefined) {
      const found = await at(as_of, "clicks", "suspected");
      const { all, others } = found.states.suspected;
      return {
        ...pickClicks(all),
        links: listLinkCounts(found.states),
        others: pickClicks(others),
        as_of: toMomentJson(found),
      };
    }
    const link = parseLink(wanted);
    const { states, ...place } = await at(as_of, "clicks", "suspected");
    const { others } = states.clicks;
    // If the projection has dropped no link yet, it counts all clicks of this one. Otherwise it may have dropped this
    // link and counted only later clicks, so the clicks are read from the log.
    const isWhole = others.clicks + others.bots === 0;
    const counted = isWhole ? states : await countLink(store, streamsOfLink(states.clicks, link), place);
    const one = listLinkCounts(counted).find((each) => each.link === link);
    if (one === undefined) return "unknown_link";
    return { ...pickClicks(one), links: [one], others: pickClicks(noClicks()), as_of: toMomentJson(place) };
  },
  table({ links, others, ...all }, input) {
    const rows = links.map(({ link, clicks, suspected, bots, first, last }) => [
      link,
      clicks,
      suspected,
      bots,
      first,
      last,
    ]);
    const sums = (what: string, { clicks, suspected, bots }: SuspectedCounts) => [
      what,
      clicks,
      suspected,
      bots,
      "",
      "",
    ];
    if (others.clicks + others.bots > 0) rows.push(sums("(links no longer told apart)", others));
    if (input.link === undefined) rows.push(sums("total", all));
    return { head: ["link", "people", "suspected", "bots", "first", "last"], rows };
  },
  text: ({ as_of }) => `(${describeMomentJson(as_of)})\n`,
  examples: ["go.example/welcome --as-of 2026-11-21"],
});

function pickClicks({ clicks, bots, suspected }: SuspectedCounts): SuspectedCounts {
  return { clicks, bots, suspected };
}
