import type { CampaignDefinition } from "../../events/campaign.ts";
import { isoTime } from "../../src/platform/clock-ids-and-timers.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import type { Part, Random } from "./write-mixed-log.ts";
import { RUN_MESSAGES, toPerson } from "./generate-outreach-events.ts";

/** Number of rounds for each run of a campaign, so that a log of two million events has 800 of them. */
const ROUNDS_A_RUN = 50;

/**
 * Distance in the list of recipients from the first recipient of one campaign to that of the next. A campaign has more
 * recipients than that, so many recipients get messages of several campaigns.
 */
const APART = 200;

/** Companies of the recipients in the audience of every second campaign that is no follow-up. */
const COMPANIES = Array.from({ length: 50 }, (_, number) => `Company ${number}`).join("|");

/** Returns the name of a campaign. Each second campaign follows the one before. */
export function campaignName(number: number): string {
  return `campaign-${number + 1}`;
}

/** Creates `count` campaigns at the beginning, and writes their runs, one campaign after the other. */
export function campaignsPart(count: number): Part {
  const written = Array.from({ length: count }, () => 0);
  let rounds = 0;
  let runs = 0;
  return (emit, random) => {
    rounds++;
    if (rounds === 1)
      emit(
        STREAMS.outreach,
        written.map((_, number) => creationOf(number)),
      );
    if (count === 0 || rounds % ROUNDS_A_RUN !== 0) return;
    const number = runs++ % count;
    const first = number * APART + written[number]!;
    written[number]! += RUN_MESSAGES;
    emit(STREAMS.outreach, runOf(number, first, runs, random));
  };
}

function creationOf(number: number): NewEvent {
  const isFollowUp = number % 2 === 1;
  const audience: CampaignDefinition["audience"] = isFollowUp
    ? { messaged: campaignName(number - 1), days: 3 }
    : { source: "list", ...(number % 4 === 0 && { fields: ["first_name", `company=${COMPANIES}`] }) };
  const text = `Hi {{name|there}}, news ${number}: https://go.example/spring`;
  return { type: "CampaignCreated", data: { name: campaignName(number), text, audience } };
}

/** Returns the events of a run: an intent and an outcome for each message, and sometimes a reply. */
function runOf(number: number, first: number, runs: number, random: Random): readonly NewEvent[] {
  const campaign = campaignName(number);
  const run_id = `01990000-0000-7000-9000-${String(runs).padStart(12, "0")}`;
  const follows = number % 2 === 1 ? { follows: campaignName(number - 1) } : {};
  const day = new Date(Date.UTC(2026, 10, 20 + Math.floor(runs / 5))).toISOString().slice(0, 10);
  const newEvents: NewEvent[] = [{ type: "RunStarted", data: { run_id, dry_run: false, campaign } }];
  for (let at = first; at < first + RUN_MESSAGES; at++) {
    const outcome = { attempt_id: `attempt-${campaign}-${at}`, run_id, recipient: toPerson(at), campaign };
    const text = `Hi Name${at}, news ${number}: https://go.example/spring`;
    const intent = { ...outcome, ...follows, text, links: ["go.example/spring"], variant: "A", basis: "opt_in", day };
    const message_id = `8${number}-${at}`;
    newEvents.push(
      { type: "DirectMessageAttempted", data: intent as Extract<NewEvent, { type: "DirectMessageAttempted" }>["data"] },
      { type: "DirectMessageSent", data: { ...outcome, message_id, settled_by: "answer" } },
    );
    if (random() >= 0.1) continue;
    const reply = { recipient: toPerson(at), message_id: `7${number}-${at}`, received_at: isoTime(Date.now()) };
    newEvents.push({ type: "DirectMessageReceived", data: reply });
  }
  const counts = { sent: RUN_MESSAGES, skipped: 0, failed: 0, in_doubt: 0 };
  return [...newEvents, { type: "RunFinished", data: { run_id, reason: "completed", ...counts } }];
}
