import { expect } from "bun:test";
import type { DirectMessage } from "../../sandbox/x/state.ts";
import { BEARER, exported, type Installation, type Running } from "../harness/process.ts";

export const DAY_MS = 24 * 3_600_000;

/** Campaigns of the trial. The text of each message begins with its campaign's name. */
export const TRIAL_CAMPAIGNS = {
  spring: { fields: ["city=Rome"] },
  again: { messaged: "spring", days: 4 },
  summer: { source: "list", topic: "news", gap_days: 14 },
} as const;
export type TrialCampaign = keyof typeof TRIAL_CAMPAIGNS;
export const TRIAL_NAMES = Object.keys(TRIAL_CAMPAIGNS) as TrialCampaign[];

/** Days between two messages to one recipient, over all campaigns. */
export const GAP_DAYS = 3;

/** Maximum time in ms from a run's last check until X accepts the message, on any machine. */
const ON_THE_WAY_MS_MAX = 1_000;

/**
 * Maximum time in ms by which two messages may be nearer than the gap. The gap counts from intent to intent, and the
 * first message may have reached X later than its intent.
 */
const WAITED_MS_MAX = 60_000;

/**
 * Reaction of a recipient; `at` is its time by the sandbox's clock. `hold` is a message in X Chat, which the service
 * cannot read.
 */
export interface Reaction {
  readonly id: string;
  readonly kind: "reply" | "stop" | "page" | "hold";
  readonly at: number;
}

/** Kinds of recipients, each with the names of the campaigns that may write to them. */
export const KINDS = {
  full: ["spring", "again", "summer"],
  noEvidence: [],
  forTopic: ["summer"],
  closed: [],
  elsewhere: ["summer"],
  none: [],
} as const satisfies Record<string, readonly TrialCampaign[]>;
export type Kind = keyof typeof KINDS;

export interface TrialBooks {
  readonly kinds: ReadonlyMap<string, Kind>;
  readonly reactions: Reaction[];
  /** Id of the account that sends. */
  readonly own: string;
  readonly limit: number;
}

/** Message of the account as X keeps it, with its campaign. */
interface Sent extends DirectMessage {
  readonly campaign: TrialCampaign;
}

/**
 * Returns the messages that the sending account has sent, from the sandbox's record of X, oldest first, each with its
 * campaign.
 */
export function messagesOf({ sandbox }: Installation, own: string): readonly Sent[] {
  const ours = sandbox.x.messages.kept.filter(({ sender_id }) => sender_id === own);
  return ours.map((message) => ({
    ...message,
    campaign: TRIAL_NAMES.find((name) => message.text.startsWith(`${name}:`))!,
  }));
}

/**
 * Expects that X's messages keep each rule of campaigns, judging by the sandbox's record of messages and not by the
 * log. Returns figures about them.
 */
export function expectRulesKept(world: Installation, books: TrialBooks) {
  const messages = messagesOf(world, books.own);
  const perDay: Record<string, number> = {};
  const seen = new Set<string>();
  let [endedChains, onTheWay] = [0, 0];
  for (const message of messages) {
    const { recipient_id: id, campaign, created_at: at } = message;
    const day = new Date(at).toISOString().slice(0, 10);
    perDay[day] = (perDay[day] ?? 0) + 1;
    expect(seen.has(`${campaign} ${id}`)).toBe(false);
    seen.add(`${campaign} ${id}`);
    expect(KINDS[books.kinds.get(id)!] as readonly TrialCampaign[]).toContain(campaign);
    const before = messages.filter((one) => one.recipient_id === id && one.created_at < at);
    const days = campaign === "summer" ? TRIAL_CAMPAIGNS.summer.gap_days : GAP_DAYS;
    for (const one of before) expect(at - one.created_at).toBeGreaterThan(days * DAY_MS - WAITED_MS_MAX);
    const reactions = books.reactions.filter((one) => one.id === id && one.at < at);
    for (const { kind, at: reactedAt } of reactions) {
      if (at - reactedAt < ON_THE_WAY_MS_MAX) onTheWay++;
      else expect(["stop", "page"]).not.toContain(kind);
    }
    if (campaign !== "again") continue;
    const first = before.find((one) => one.campaign === "spring");
    expect(first).toBeDefined();
    expect(at - first!.created_at).toBeGreaterThan(TRIAL_CAMPAIGNS.again.days * DAY_MS - WAITED_MS_MAX);
    expect(reactions.filter((one) => one.at > first!.created_at && at - one.at >= ON_THE_WAY_MS_MAX)).toEqual([]);
  }
  for (const { recipient_id: id, campaign, created_at: at } of messages) {
    const isEnded = campaign === "spring" && books.reactions.some((one) => one.id === id && one.at > at);
    if (isEnded && !seen.has(`again ${id}`)) endedChains++;
  }
  expect(Math.max(0, ...Object.values(perDay))).toBeLessThanOrEqual(books.limit);
  return {
    sent: messages.length,
    days: Object.keys(perDay).length,
    mostADay: Math.max(...Object.values(perDay)),
    endedChains,
    onTheWay,
  };
}

interface CampaignRow {
  readonly campaign: string;
  readonly sent: number;
  readonly replied: number;
  readonly opted_out: number;
}

/**
 * Expects that the log, the counts and the results of each campaign agree with X's messages, one by one. Returns the
 * results.
 */
export async function expectAgreement(world: Installation, service: Running, books: TrialBooks) {
  const messages = messagesOf(world, books.own);
  const sent = (await exported(world)).filter(({ type }) => type === "DirectMessageSent");
  const line = (campaign: unknown, id: unknown, message: unknown) => JSON.stringify({ campaign, id, message });
  expect(
    sent
      .map(({ data }) => line(data["campaign"], (data["recipient"] as { id: string }).id, data["message_id"]))
      .toSorted(),
  ).toEqual(messages.map(({ campaign, recipient_id, id }) => line(campaign, recipient_id, id)).toSorted());

  const read = async (path: string) => (await service.get(path, { headers: BEARER })).json();
  const stats = (await read("/social/stats?by=campaign")) as { sent: number; campaigns: CampaignRow[] };
  const results = (await read("/social/results?by=campaign")) as { rows: CampaignRow[]; total: CampaignRow };
  const expected = countByCampaign(messages, books);
  const inOrder = (rows: readonly CampaignRow[]) => Object.fromEntries(rows.map((row) => [row.campaign, row]));
  const [counted, shown] = [inOrder(stats.campaigns), inOrder(results.rows)];
  expect(stats.sent).toBe(messages.length);
  expect(results.total.sent).toBe(messages.length);
  const figures: Record<string, string> = {};
  for (const name of TRIAL_NAMES) {
    const { sent: wanted, replied, opted_out, either } = expected[name];
    expect([counted[name]?.sent, shown[name]?.sent]).toEqual([wanted, wanted]);
    expect(Math.abs(shown[name]!.replied - replied)).toBeLessThanOrEqual(either);
    expect(Math.abs(shown[name]!.opted_out - opted_out)).toBeLessThanOrEqual(either);
    figures[name] = `${wanted} sent, ${replied} replied, ${opted_out} opted out`;
    const due = (await read(`/social/campaigns/count?name=${name}`)) as Record<"matching" | "known", number>;
    if (name === "spring")
      expect(due.matching).toBe([...books.kinds.values()].filter((kind) => kind !== "elsewhere").length);
    if (name === "summer") expect(due.matching).toBe(books.kinds.size);
  }
  const metrics = await (await service.get("/metrics", { headers: BEARER })).text();
  for (const name of TRIAL_NAMES) expect(metrics).toContain(`campaign="${name}"`);
  return figures;
}

/**
 * Counts X's messages by campaign, and the recipients whose newest message before their reaction was of that campaign.
 * `either` counts reactions while a message was on its way, which may belong to it or to the one before.
 */
function countByCampaign(messages: readonly Sent[], { reactions }: TrialBooks) {
  const none = () => ({ sent: 0, replied: 0, opted_out: 0, either: 0 });
  const counts = Object.fromEntries(TRIAL_NAMES.map((name) => [name, none()])) as Record<
    TrialCampaign,
    ReturnType<typeof none>
  >;
  const counted = new Set<string>();
  for (const { campaign } of messages) counts[campaign].sent++;
  for (const { id, kind, at } of reactions) {
    if (kind === "hold") continue;
    const all = messages.filter((one) => one.recipient_id === id);
    const newest = all.findLast((one) => one.created_at <= at);
    const isOnTheWay = all.some((one) => one.created_at > at && one.created_at - at < ON_THE_WAY_MS_MAX);
    if (isOnTheWay) for (const name of TRIAL_NAMES) counts[name].either++;
    if (newest === undefined) continue;
    const what =
      kind === "reply"
        ? (["replied"] as const)
        : kind === "stop"
          ? (["replied", "opted_out"] as const)
          : (["opted_out"] as const);
    for (const one of what) {
      if (counted.has(`${newest.id} ${one}`)) continue;
      counted.add(`${newest.id} ${one}`);
      counts[newest.campaign][one]++;
    }
  }
  return counts;
}
