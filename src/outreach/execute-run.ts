import { LeaseLost } from "eventstore-lite";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { Recipient, RunEnd, Usage } from "../../events/outreach.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { type NewEvent, STREAMS } from "../log/event-log.ts";
import { handle, record } from "../log/decide-and-append.ts";
import type { SocialUser } from "../networks/network.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { errorFields } from "../platform/logger.ts";
import { outreachState, quotaNow, RUN_ATTEMPTS_MAX, rulesNow, type RunContext } from "./run-context.ts";
import { renderAll } from "../template/template.ts";
import {
  decideTurn,
  messageRecipient,
  newSkips,
  type OutreachRules,
  type OutreachState,
  type Refused,
  toSkips,
} from "./decide.ts";
import type { Meter } from "./network-cost-in-usd.ts";
import { createRetry, pause, QUICK_ATTEMPTS_MAX, READ_ATTEMPTS_MAX } from "./pacing-and-retries.ts";
import { settleOpen } from "./settle-messages-in-doubt.ts";
import { countFound, countPassed, recordListed, type DryRun } from "./dry-run/record-dry-run-recipients.ts";
import { callsForAction, stopReason } from "./run-end-and-stop-request.ts";
import { decideEnd, toNotReached } from "./requested/recipients-named-in-trigger.ts";
import { createScreening, type Ended } from "./screening.ts";
import { takeTurn } from "./send.ts";

/** The report of a finished run. `until`: when the sending window opens for the next recipient, ISO 8601. */
export interface RunReport extends DataOf<"RunFinished"> {
  readonly started_at: string;
  readonly finished_at: string;
  /** Requests and messages for which the network charges this run, and their cost. */
  readonly usage: Usage;
  /**
   * Findings of a dry run; absent for a real run. `estimate`: the network use and cost of the real run that it
   * previews.
   */
  readonly preview?: DryRun & { readonly estimate: Usage };
}

/** A started run without its time limit, which `perform` adds to the signals that stop it. */
export type StartedRun = Omit<RunContext, "pause">;

/**
 * Executes a run whose start is in the log, and appends its end. Throws if the run must not continue, because another
 * instance took its lease.
 */
export async function perform(started: StartedRun, meter: Meter, dryRun: boolean): Promise<RunReport> {
  const timeLimit = new AbortController();
  const ended = new AbortController();
  void started.sleep(started.runMaxMs, ended.signal).then(() => timeLimit.abort("time_limit" satisfies RunEnd));
  const run: RunContext = {
    ...started,
    signal: AbortSignal.any([started.signal, timeLimit.signal]),
    pause: (reason, until) => pause(run, reason, until),
  };
  try {
    return dryRun ? await performDry(run, meter) : await performReal(run, meter);
  } finally {
    ended.abort();
  }
}

async function performReal(run: RunContext, meter: Meter): Promise<RunReport> {
  const { screen, hadTurn } = createSendLoop(run);
  for (;;) {
    const ended = await sendAndSettle(run, screen);
    const { started_at, sent, skipped, failed, in_doubt } = currentRun(run);
    const data = { run_id: run.runId, ...ended, sent, skipped, failed, in_doubt, usage: meter.usage() };
    const report = await run.reportEnd({ ...data, usd: data.usage.usd });
    const finished_at = await appendEnd(run, { type: "RunFinished", data }, hadTurn, report);
    if (finished_at !== undefined) return { ...data, started_at, finished_at };
  }
}

async function sendAndSettle(run: RunContext, screen: () => Promise<Ended>): Promise<Ended> {
  try {
    await settleOpen(run, run);
    const ended = await screen();
    const { reason } = ended;
    if (callsForAction(run, reason)) await run.announce(`outreach stopped: ${reason}`, `run/${run.runId}`);
    await settleOpen(run, run);
    return ended;
  } catch (fault) {
    if (fault instanceof LeaseLost) throw fault;
    run.logger.error("a run ended by a fault", { run_id: run.runId, ...errorFields(fault) });
    return { reason: "fault" };
  }
}

async function performDry(run: RunContext, meter: Meter): Promise<RunReport> {
  const { started_at } = currentRun(run);
  const names = new Map<string, string>();
  const { passed, ...preview } = await executeDryRun(run, names);
  const { would_send, would_skip: _skips, variants: _variants, ...ended } = preview;
  const usage = meter.usage();
  const estimate = meter.estimate(would_send.length);
  await recordListed(run, preview, names);
  const data = { run_id: run.runId, ...ended, ...countFound(preview), ...countPassed(passed), usage, estimate };
  const finished_at = await appendEnd(run, { type: "DryRunFinished", data }, () => true);
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  return {
    run_id: run.runId,
    ...ended,
    ...counts,
    started_at,
    finished_at: finished_at!,
    usage,
    preview: { ...preview, estimate },
  };
}

/**
 * Appends the event that ends the run, and the request for its report. Returns the event's time in the log. Undefined
 * if the run must continue, because it has not reached all recipients that callers requested meanwhile.
 */
async function appendEnd(
  run: RunContext,
  end: Extract<NewEvent, { type: "RunFinished" | "DryRunFinished" }>,
  hadTurn: (recipient: Recipient) => boolean,
  report?: readonly NewEvent[],
): Promise<string | undefined> {
  const { metadata, lease, projector } = run;
  const decide = () => decideEnd(projector.state("run").current, end, hadTurn, report);
  const handled = await handle(run, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX });
  return "refusal" in handled ? undefined : (projector.time ?? isoTime(run.clock()));
}

function currentRun(run: RunContext) {
  const { current } = run.projector.state("run");
  if (current?.run_id !== run.runId) throw new Error(`run ${run.runId} is not the one in progress`);
  return current;
}

/**
 * Number of messages, one after the other, that the network rejects before the run ends. Each rejection costs a
 * recipient their message.
 */
const REJECTED_IN_A_ROW_MAX = 3;

/** Creates the loop that sends to all recipients who may be contacted, one after the other, until something ends it. */
function createSendLoop(run: RunContext) {
  const { metadata, lease, runId: run_id } = run;
  /** When the next message may be sent, ms since the epoch. */
  let nextSendAt = 0;
  /**
   * True if the newest event of the run states when the next message goes out, so that no event for the pause is
   * needed.
   */
  let isSaid = false;
  let rejectedInARow = 0;
  return createScreening(run, {
    retry: createRetry(run, run, READ_ATTEMPTS_MAX),
    pausesWhenClosed: run.rules.window?.whenClosed === "pause",
    planned: () => 0,
    async skip(refused) {
      const decide = () => ({ events: newSkips(outreachState(run), run.rules, run_id, refused) });
      const handled = await handle(run, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX });
      if ("events" in handled && handled.events.length > 0) isSaid = false;
    },
    async waitForTurn() {
      // The wait comes before a message, because after the last one there is nothing to wait for.
      if (isSaid) await run.sleep(nextSendAt - run.clock(), run.signal);
      else await run.pause("pace", nextSendAt);
      return stopReason(run);
    },
    async write(user, source) {
      const turn = await takeTurn(run, user, source);
      const { rejected, isWindowClosed, end } = turn;
      if (end !== undefined) return end;
      nextSendAt = turn.nextSendAt ?? nextSendAt;
      isSaid = turn.isSaid;
      // A single rejection may be due to the recipient or the text. If several in a row are rejected, our request must
      // be at fault.
      rejectedInARow = rejected ? rejectedInARow + 1 : 0;
      if (isWindowClosed) return "closed";
      return rejectedInARow >= REJECTED_IN_A_ROW_MAX ? "request_rejected" : undefined;
    },
    async finishPage(read) {
      isSaid = false;
      await record(run, STREAMS.outreach, [{ type: "SourceRead", data: { ...read, run_id } }], { metadata, lease });
    },
  });
}

/** Executes a dry run. Adds to `names`, by id, the names of recipients that only the network knows. */
async function executeDryRun(run: RunContext, names: Map<string, string>) {
  const { accountId } = run;
  const would_send: DryRun["would_send"][number][] = [];
  const variants: DryRun["variants"][number][] = [];
  const refused: Refused[] = [];
  const { screen } = createScreening(run, {
    retry: createRetry(run, run, QUICK_ATTEMPTS_MAX, true),
    pausesWhenClosed: false,
    planned: () => would_send.length,
    async skip(more) {
      refused.push(...more);
    },
    waitForTurn: async () => undefined,
    async write(user, source) {
      const [state, rules] = [outreachState(run), rulesNow(run)];
      const command = { user, attempt_id: run.makeId(), run_id: run.runId, accountId, now: quotaNow(run), source };
      const decision = decideTurn(state, rules, command);
      if ("refusal" in decision) return decision.refusal.isWindowClosed === true ? "closed" : decision.refusal.end;
      const intent = decision.events.at(-1);
      if (intent?.type !== "DirectMessageAttempted") return undefined;
      if (would_send.length === 0) variants.push(...previewVariants(state, rules, user));
      const { recipient, text, variant } = intent.data;
      if (findPerson(state.contacts, user)?.name === undefined && user.name !== "") names.set(user.id, user.name);
      would_send.push({ recipient, text, variant });
      return undefined;
    },
    async finishPage() {},
  });
  const ended = await screen();
  const passed = toNotReached(currentRun(run), run.runId, refused);
  if (passed.length > 0) await record(run, STREAMS.outreach, passed, { metadata: run.metadata, lease: run.lease });
  const would_skip = toSkips(outreachState(run), refused).map(({ found: _found, ...skip }) => skip);
  return { ...ended, would_send, would_skip, variants, passed: refused };
}

/** Renders every variant of the template for one recipient, without variants that lack a field. */
function previewVariants({ contacts }: OutreachState, { template }: OutreachRules, user: SocialUser) {
  const known = messageRecipient(findPerson(contacts, user), user);
  return renderAll(template, known).flatMap(({ variant, rendered }) =>
    rendered.ok ? [{ variant, text: rendered.text }] : [],
  );
}
