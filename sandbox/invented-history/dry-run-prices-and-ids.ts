import { OPERATOR, STORY_STREAMS, type StoryLog, type StoryTemplate } from "./story-log-interface.ts";
import type { StoryPerson } from "./people.ts";
import { isMessage } from "./plan-runs.ts";

/** Rules of the story's runs, as the product's events name them. */
export const STORY_RULES = { daily_limit: 100, timezone: "UTC", require_consent: true };

/** X's prices in dollars: for sending a message, for looking up a person, and for reading a message. */
const PRICES = { send: 0.015, user: 0.01, message: 0.01 };

/** Has the operator make a dry run over these recipients, with as many messages as a day's quota allows. */
export async function rehearse(log: StoryLog, template: StoryTemplate, people: readonly StoryPerson[]): Promise<void> {
  const run_id = toStoryId("dry run", "1");
  const listed = people.map(({ id, username, name, product, fate }) => {
    const recipient = { id, username };
    if (!isMessage(fate) && fate !== "left") return { run_id, recipient, reason: fate };
    return { run_id, recipient, name, variant: template.write(recipient, { name, fields: { product } }).variant };
  });
  const sends = listed.flatMap(({ variant }) => variant ?? []).slice(0, STORY_RULES.daily_limit);
  const skips = listed.flatMap(({ reason }) => reason ?? []);
  const usage = priced({ sends: 0, users: sends.length, messages: 0 });
  const figures = { variants: countEach(sends), skips: countEach(skips), usage };
  const estimate = priced({ sends: sends.length, users: sends.length, messages: 0 });
  const found = { would_send: sends.length, would_skip: skips.length, estimate, ...figures };
  const rules = { ...STORY_RULES, ...template.names };
  let left = STORY_RULES.daily_limit;
  const shown = listed.filter(({ reason }) => reason !== undefined || left-- > 0);
  const events = shown.map((data) => ({ type: "DryRunRecipientListed", data }));
  const started = { type: "RunStarted", data: { run_id, dry_run: true, rules } };
  const finished = { type: "DryRunFinished", data: { run_id, reason: "daily_limit_reached", ...found } };
  await log.append(STORY_STREAMS.outreach, [started, ...events, finished], OPERATOR);
}

/** Returns a run's use of the network, with its price in dollars. */
export function priced(used: { readonly sends: number; readonly users: number; readonly messages: number }) {
  const usd = used.sends * PRICES.send + used.users * PRICES.user + used.messages * PRICES.message;
  return { ...used, followers: 0, posts: 0, usd: Math.round(usd * 1_000) / 1_000 };
}

function countEach(names: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]));
}

const KINDS = ["run", "dry run", "attempt"] as const;

/** Returns an id in the form of a UUIDv7 that depends only on what it names. */
export function toStoryId(kind: (typeof KINDS)[number], digits: string): string {
  const hex = BigInt(digits).toString(16).padStart(12, "0");
  return `01990000-0000-7000-800${KINDS.indexOf(kind)}-${hex.slice(-12)}`;
}
