import type { StoryLog } from "./invented-history/story-log-interface.ts";
import { toPersonOnX } from "./invented-history/people.ts";
import { STORY_ACCOUNT } from "./invented-history/replies.ts";
import { storyPeople, writeStory } from "./invented-history/write-story.ts";
import { STORY_DAYS } from "./invented-history/timeline.ts";
import type { MovedClock } from "./demo-history.ts";
import type { Sandbox } from "./sandbox.ts";
import { deliver } from "./x/messages.ts";

const DAY_MS = 86_400_000;

/**
 * The simulated Telegram refuses the demo's first request with a 429, which asks the service to wait this many seconds.
 */
const TELEGRAM_WAITS_S = 1_200;

/**
 * Writes six busy weeks, ending now, to the log that `openLog` opens, and their messages and people to the sandbox's X.
 * X there has taken back the account's authorization, so the operator of the demo has to give it again.
 */
export async function makeBusyHistory(
  openLog: (now: () => number) => Promise<StoryLog>,
  { x, faults }: Sandbox,
  clock: MovedClock,
): Promise<void> {
  for (const person of storyPeople()) x.people.set(person.id, toPersonOnX(person));
  for (const { id, can_authorize } of x.people.values()) if (can_authorize === true) x.people.delete(id);
  x.people.set(STORY_ACCOUNT.id, { ...STORY_ACCOUNT, can_authorize: true });
  const now = clock.now();
  clock.freezeAt(now - STORY_DAYS * DAY_MS);
  {
    await using log = await openLog(clock.now);
    const mailbox = { deliver: (from: string, to: string, text: string) => deliver(x, from, to, text).id };
    await writeStory({ log, clock, mailbox, now });
  }
  clock.setBack(0);
  faults.add({ network: "telegram", kind: "429", retryAfter: TELEGRAM_WAITS_S, count: 1 });
}
