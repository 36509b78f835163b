import type { StoryClicks } from "./clicks.ts";
import {
  OPERATOR,
  PRODUCT,
  SCHEDULER,
  STORY_STREAMS,
  type StoryEvent,
  type StoryLog,
  type StoryMailbox,
  type StoryTemplate,
} from "./story-log-interface.ts";
import type { StoryPerson } from "./people.ts";
import { type Fate, isMessage, type PlannedRun } from "./plan-runs.ts";
import { priced, STORY_RULES, toStoryId } from "./dry-run-prices-and-ids.ts";
import { type createAccount, type createReplies, STORY_ACCOUNT } from "./replies.ts";
import type { Timeline } from "./timeline.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** Time after midnight at which a run starts. */
const RUN_AT_MS = 8 * 60 * MINUTE_MS + 4 * SECOND_MS;
/** Time between two messages of a run: X's limit is one a minute. */
const SPACING_MS = 62 * SECOND_MS;
const SKIP_MS = 2 * SECOND_MS;
const WAIT_MS = 4 * MINUTE_MS;
const ANSWER_MS = 700;

interface RunParts {
  readonly log: StoryLog;
  readonly timeline: Timeline;
  readonly mailbox: StoryMailbox;
  readonly clicks: StoryClicks;
  readonly replies: ReturnType<typeof createReplies>;
  readonly account: ReturnType<typeof createAccount>;
  readonly templates: Readonly<Record<PlannedRun["campaign"], StoryTemplate>>;
}

/** Creates the part of the story that runs outreach. */
export function createRuns(parts: RunParts) {
  const { log, timeline, replies, account, templates } = parts;
  const messages = createMessages(parts);
  const outreach = (type: string, data: object, caller = SCHEDULER) =>
    log.append(STORY_STREAMS.outreach, [{ type, data }], caller);

  const begin = async (run: PlannedRun, run_id: string, at: number): Promise<void> => {
    const used = { name: SCHEDULER, token_id: "5c8ed1e0a7b2", day: toDay(at) };
    await log.append(STORY_STREAMS.access, [{ type: "TokenUsed", data: used }], PRODUCT);
    await account.renew(at);
    const limit = run.end === "limit" ? count(run, "sent", "in_doubt") : STORY_RULES.daily_limit;
    const rules = { ...STORY_RULES, ...templates[run.campaign].names };
    await outreach("RunStarted", { run_id, dry_run: false, limit, rules });
    if (run.number > 1) await replies.read(run_id);
  };

  const finish = async (run: PlannedRun, run_id: string, read: number): Promise<void> => {
    const [sent, failed, in_doubt] = [count(run, "sent"), count(run, "failed"), count(run, "in_doubt")];
    const counts = { sent, skipped: run.fates.length - sent - failed - in_doubt, failed, in_doubt };
    if (run.end === "cut_off") return void (await outreach("RunAbandoned", { run_id, ...counts }, PRODUCT));
    const usage = priced({ sends: sent + in_doubt, users: run.fates.length, messages: read });
    const reason = run.end === "stopped" ? "stopped" : "limit_reached";
    await outreach("RunFinished", { run_id, reason, ...counts, usage });
  };

  return {
    /** Plans a run of these recipients. */
    plan(run: PlannedRun, people: readonly StoryPerson[]): void {
      const run_id = toStoryId("run", String(run.number));
      const start = timeline.moment(run.daysAgo, RUN_AT_MS);
      const after = (ms: number): number => timeline.after(start, ms);
      let read = 0;
      timeline.at(start, () => {
        read = replies.countUnread();
        return begin(run, run_id, start);
      });
      let offset = 8 * SECOND_MS;
      for (const [nth, person] of people.entries()) {
        if (run.waits && nth === Math.floor(people.length / 2)) {
          const at = after(offset);
          offset += WAIT_MS;
          const until = toTime(after(offset));
          timeline.at(at, () => outreach("RunPaused", { run_id, reason: "rate_limited", until }));
        }
        const at = after(offset);
        offset += isMessage(person.fate) ? SPACING_MS : SKIP_MS;
        const next = nth === people.length - 1 ? {} : { next_at: toTime(after(offset)) };
        const { id, username, fate: reason } = person;
        timeline.at(at, () =>
          isMessage(reason)
            ? messages.send(run_id, person, run.campaign, at, next)
            : outreach("DirectMessageSkipped", { run_id, recipient: { id, username }, reason }),
        );
      }
      if (run.end === "stopped")
        timeline.at(after(offset - 20 * SECOND_MS), () => outreach("RunStopRequested", { run_id }, OPERATOR));
      timeline.at(after(offset), () => finish(run, run_id, read));
    },
  };
}

/** Creates the part of the story that writes messages to recipients, and what follows from each. */
function createMessages({ log, timeline, mailbox, clicks, replies, templates }: RunParts) {
  const known = new Set<string>();
  const outreach = (...events: readonly StoryEvent[]) => log.append(STORY_STREAMS.outreach, events, SCHEDULER);

  /** Returns the event that records how X answered the attempt to send a message. */
  const answer = (fate: Fate, attempt: { recipient: { id: string } }, text: string, next: object): StoryEvent => {
    if (fate === "failed") {
      const detail = "X answered 403: You do not have permission to DM one or more participants.";
      const failure = { reason: "recipient_closed", detail, frees_quota: true, retry: false };
      return { type: "DirectMessageFailed", data: { ...attempt, ...failure } };
    }
    // Even if the message is in doubt, X has accepted it: only X's answer is lost.
    const message_id = mailbox.deliver(STORY_ACCOUNT.id, attempt.recipient.id, text);
    return fate === "in_doubt"
      ? { type: "DirectMessageInDoubt", data: { ...attempt, detail: "X gave no answer within 10 s" } }
      : { type: "DirectMessageSent", data: { ...attempt, message_id, settled_by: "answer", ...next } };
  };

  return {
    /** Records the intent to write to a recipient, and plans what follows from it. */
    async send(run_id: string, person: StoryPerson, campaign: PlannedRun["campaign"], at: number, next: object) {
      const { id, username, name, product, fate, isTracked } = person;
      const recipient = { id, username };
      const template = templates[campaign];
      const secret = isTracked ? `secret of ${id}` : undefined;
      const message = template.write(recipient, { name, fields: { product } }, secret);
      const added = message.shared.filter(({ code }) => !known.has(code));
      for (const { code } of added) known.add(code);
      const links = added.map((link) => {
        return { type: "LinkAdded", data: { ...link, ...template.names, variant: message.variant } };
      });
      const attempt = { attempt_id: toStoryId("attempt", id), run_id, recipient };
      const grounds = { ...template.names, basis: "opt_in", source: "list" };
      const counted = { account_id: STORY_ACCOUNT.id, day: toDay(at), timezone: "UTC" };
      const intent = { ...attempt, ...message.intent, ...grounds, ...counted };
      await outreach(...links, { type: "DirectMessageAttempted", data: intent });
      const answered = timeline.after(at, ANSWER_MS);
      timeline.at(answered, () => outreach(answer(fate, attempt, message.intent.text, next)));
      if (fate !== "sent") return;
      clicks.planVisits(message, campaign, answered);
      replies.plan(person, answered);
    },
  };
}

function count({ fates }: PlannedRun, ...wanted: readonly Fate[]): number {
  return fates.filter((fate) => wanted.includes(fate)).length;
}

const toTime = (ms: number): string => new Date(ms).toISOString();
const toDay = (ms: number): string => toTime(ms).slice(0, 10);
