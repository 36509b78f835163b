import type { Recorded } from "../../../events/event-types-and-codec.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { violated, type Attempt, type Books } from "./log-summary.ts";
import type { House } from "./simulated-world.ts";
import { CONSENT_FOR } from "./initial-state.ts";

/**
 * Campaigns in each generated history, in addition to `default`. `follows`: the campaign sends its message only after a
 * message of this other campaign.
 */
export const CAMPAIGNS: Readonly<Record<string, { readonly follows?: string; readonly basis?: "dm_first" }>> = {
  spring: {},
  wrote: { basis: "dm_first" },
  first: { follows: "default" },
  second: { follows: "first" },
  third: { follows: "default" },
  fourth: { follows: "second" },
};

/** Maximum number of follow-ups after a first message. */
const FOLLOW_UPS_MAX = 2;

const DAY_MS = 24 * 3_600_000;

/** Minimum number of days between two messages to one recipient, over all campaigns, in each generated history. */
export const GAP_DAYS = 2;

/**
 * Minimum number of days that the campaign `spring` requires between two messages to one recipient, instead of
 * GAP_DAYS.
 */
export const SPRING_GAP_DAYS = 4;

export function createCampaigns(): NewEvent[] {
  return Object.entries(CAMPAIGNS).map(([name, { follows: messaged, basis }]): NewEvent => {
    const audience = { ...(messaged && { messaged, days: 1 }), ...(basis && { basis }) };
    const gap = name === "spring" ? { gap_days: SPRING_GAP_DAYS } : {};
    return { type: "CampaignCreated", data: { name, text: `${name}: hi {{name}} {{optout}}`, audience, ...gap } };
  });
}

/**
 * Returns the campaign of a message. In the model, the text of a campaign begins with the campaign's name and a colon;
 * any other text is of `default`.
 */
export function campaignOfText(text: string): string {
  return Object.keys(CAMPAIGNS).find((name) => text.startsWith(`${name}:`)) ?? "default";
}

/**
 * Notes that a person answered us, or that a run held a person because of their reply. Neither may get a follow-up to
 * an earlier message.
 */
export function noteAnswer(
  { answers }: Books,
  about: string,
  event: Recorded<"DirectMessageReceived" | "RecipientHeld">,
) {
  answers.push({ id: about, position: event.position, at: Date.parse(event.data.received_at) });
}

/**
 * Checks that an intent obeys the rules of campaigns. If `wasMoved`, the log's clock was moved shortly before, so the
 * gap between messages is not checked.
 */
export function checkCampaign(books: Books, attempt: Attempt, house: House, wasMoved: boolean): void {
  const { recipientId: id, campaign: name, time, position } = attempt;
  const about = { id, name, position };
  const before = [...books.attempts.values()].filter((one) => one.recipientId === id && one.isFreed !== true);
  const days = name === "spring" ? SPRING_GAP_DAYS : GAP_DAYS;
  const near = before.find((one) => one.campaign !== name && time - one.time < days * DAY_MS);
  if (near !== undefined && !wasMoved) violated("an intent within the gap", { ...about, near });
  if (name === "default") return;
  const { kind, wrote } = { kind: house.people[Number(id) - 100], wrote: books.wrote.has(id) };
  if (kind === "no_consent" && !wrote) violated("an intent without consent", about);
  if (kind === "no_evidence" && !wrote) violated("an intent without evidence of consent", about);
  if (kind === "for_one" && !wrote && name !== CONSENT_FOR) violated("an intent beyond a consent", about);
  if (CAMPAIGNS[name]?.basis === "dm_first" && !wrote) violated("an intent outside of the audience", about);
  const followed = CAMPAIGNS[name]?.follows;
  if (followed === undefined) return;
  const isFound = books.found.has(id);
  const chainOf = before.filter((one) => one.campaign === "default" || CAMPAIGNS[one.campaign]?.follows !== undefined);
  if (!isFound && !chainOf.some((one) => one.campaign === followed)) violated("a follow-up of nothing", about);
  // A failed message and its repeat, which an operator allowed, belong to the same campaign, so the chain counts them
  // once.
  if (new Set(chainOf.map((one) => one.campaign)).size > FOLLOW_UPS_MAX) violated("a follow-up too many", about);
  if (isAnswered(books, attempt, position)) violated("a follow-up after a reply", about);
}

/**
 * True if the log held a reply of the recipient before `position`, sent after the first message of the attempt's chain
 * of follow-ups.
 */
export function isAnswered({ answers, attempts }: Books, { recipientId, campaign: name }: Attempt, position: number) {
  if (CAMPAIGNS[name]?.follows === undefined) return false;
  const chainOf = [...attempts.values()].filter((one) => {
    const isPart = one.campaign === "default" || CAMPAIGNS[one.campaign]?.follows !== undefined;
    return one.recipientId === recipientId && isPart && one.isFreed !== true;
  });
  const [first] = chainOf.toSorted((one, other) => one.time - other.time);
  return answers.some((answer) => {
    if (first === undefined || answer.id !== recipientId || answer.position >= position) return false;
    // If reply and first message have the same millisecond, their order in the log decides. A reply that the log held
    // before the intent answers nothing, because the recipient wrote first.
    return answer.at === first.time ? answer.position > first.position : answer.at > first.time;
  });
}
