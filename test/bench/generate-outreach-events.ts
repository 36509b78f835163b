import type { KnownRecipient } from "../../events/outreach.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import type { Part, Random } from "./write-mixed-log.ts";

/** Maximum number of recipients: as many as get a message in fifty days with a hundred messages a day. */
const PEOPLE_MAX = 5_000;
/**
 * Number of rounds for each added recipient. The next constant is the number for each run. A round has about fifty
 * events, so one recipient comes in 200 events and one run in 10,000.
 */
const ROUNDS_A_PERSON = 4;
const ROUNDS_A_RUN = 200;
const IMPORTED_AT_ONCE = 1_000;
/** Number of links that the message templates use: the most clicked ones. */
const MESSAGE_LINKS = 100;
/**
 * Number of the first round of log generation (about fifty events) that writes a run. It is low, so that a short log
 * contains a run too.
 */
const FIRST_RUN_ROUND = 20;
export const RUN_MESSAGES = 20;
/** Number of runs that fit into a day's quota. The run after them is of the next day. */
const RUNS_A_DAY = 5;

/**
 * Writes imports and runs that contact the imported recipients. `first` recipients are imported at the beginning. If
 * `hasEvidence`, the consents have the date and source that campaigns require.
 */
export function outreachPart(first = 0, hasEvidence = false): Part {
  let rounds = 0;
  let people = 0;
  let written = 0;
  let runs = 0;
  return (emit, random) => {
    rounds++;
    if (people < first) emit(STREAMS.outreach, importsOf(people, (people += IMPORTED_AT_ONCE), random, hasEvidence));
    if (rounds % ROUNDS_A_PERSON === 0 && people < PEOPLE_MAX)
      emit(STREAMS.outreach, [importOf(people++, random, hasEvidence)]);
    if (rounds % ROUNDS_A_RUN !== FIRST_RUN_ROUND) return;
    const run_id = `01990000-0000-7000-8000-${String(++runs).padStart(12, "0")}`;
    const day = new Date(Date.UTC(2026, 10, 20 + Math.floor(runs / RUNS_A_DAY))).toISOString().slice(0, 10);
    const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
    const newEvents: NewEvent[] = [{ type: "RunStarted", data: { run_id, dry_run: false } }];
    for (let count = 0; count < RUN_MESSAGES && written < people; count++) {
      newEvents.push(...message(written++, run_id, day, counts, random));
    }
    newEvents.push({ type: "RunFinished", data: { run_id, reason: "completed", ...counts } });
    emit(STREAMS.outreach, newEvents);
  };
}

export function toPerson(number: number): KnownRecipient {
  return { id: String(1_000_000_000 + number), username: `person_${number}` };
}

function importsOf(from: number, to: number, random: Random, hasEvidence: boolean): readonly NewEvent[] {
  return Array.from({ length: to - from }, (_, nth) => importOf(from + nth, random, hasEvidence));
}

function importOf(number: number, random: Random, hasEvidence: boolean): NewEvent {
  const fields = { first_name: `Name${number}`, company: `Company ${Math.floor(random() * 500)}` };
  const { username } = toPerson(number);
  const data = {
    recipient: { username },
    name: `Name${number} Surname`,
    basis: "opt_in",
    ...(hasEvidence && { consent_at: "2026-05-02", consent_source: "https://shop.example/form" }),
    fields,
    source: "list",
  } as const;
  return { type: "RecipientAdded", data };
}

type Counts = Record<"sent" | "skipped" | "failed" | "in_doubt", number>;

/** Events of one message in a run: mostly an intent and an outcome. */
function message(number: number, run_id: string, day: string, counts: Counts, random: Random): readonly NewEvent[] {
  const recipient = toPerson(number);
  const chance = random();
  if (chance < 0.2) {
    counts.skipped++;
    return [{ type: "DirectMessageSkipped", data: { run_id, recipient, reason: "cannot_receive_dm" } }];
  }
  const outcome = { attempt_id: `attempt-${number}`, run_id, recipient };
  const link = `go.example/post-${number % MESSAGE_LINKS}`;
  // Every third recipient has consented to tracking, so their message contains a link of their own.
  const code = `own-${number}`;
  const own = number % 3 === 0 ? { personal_links: [{ code, link }], replaced_links: [link] } : {};
  const text = `Hi Name${number}, our spring list is out: https://${number % 3 === 0 ? `go.example/${code}` : link}`;
  const intent = { ...outcome, text, links: [link], ...own, variant: "A", day };
  const newEvents: NewEvent[] = [{ type: "DirectMessageAttempted", data: intent }];
  if (chance < 0.25) {
    counts.failed++;
    const failure = { reason: "recipient_closed", detail: "403", frees_quota: true, retry: false } as const;
    return [...newEvents, { type: "DirectMessageFailed", data: { ...outcome, ...failure } }];
  }
  if (chance < 0.26) newEvents.push({ type: "DirectMessageInDoubt", data: { ...outcome, detail: "no answer" } });
  counts.sent++;
  const settled = { message_id: `9${number}`, settled_by: chance < 0.26 ? "lookup" : "answer" } as const;
  return [...newEvents, { type: "DirectMessageSent", data: { ...outcome, ...settled } }];
}
