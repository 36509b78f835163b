import { LeaseLost } from "eventstore-lite";
import type { DataOf } from "../../events/catalog.ts";
import type { KnownRecipient, Recipient, RunEnd, SkipReason, Usage } from "../../events/outreach.ts";
import { findPerson } from "../../projections/contacts.ts";
import { type NewEvent, STREAMS } from "../log/event-log.ts";
import { handle, record } from "../log/decide-and-append.ts";
import type { SocialUser } from "../networks/network.ts";
import { isoTime } from "../platform/clock.ts";
import { errorFields } from "../platform/logger.ts";
import { outreachState, quotaNow, RUN_ATTEMPTS_MAX, type RunContext } from "./context.ts";
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
import type { Meter } from "./network-cost.ts";
import { createRetry, pause, QUICK_ATTEMPTS_MAX, READ_ATTEMPTS_MAX } from "./pacing-and-retries.ts";
import { settleOpen } from "./reconcile.ts";
import { callsForAction, stopReason } from "./run-end.ts";
import { screenRecipients, type Ended } from "./screening.ts";
import { takeTurn } from "./send.ts";

/** The report of a finished run. `until`: when the window opens for the next recipient, ISO 8601. */
export interface RunReport extends DataOf<"RunFinished"> {
  readonly started_at: string;
  readonly finished_at: string;
  /** The use of the network, and its cost. */
  readonly usage: Usage;
  /** Present only for a dry run. `estimate`: the network use of the run that it rehearses. */
  readonly preview?: DryRun & { readonly estimate: Usage };
}

/** A started run, without its time limit. */
export type StartedRun = Omit<RunContext, "pause">;

/**
 * Executes a run whose start is in the log, and appends its end. Throws if it must not continue, because its lease is
 * lost.
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
  let ended: Ended;
  try {
    await settleOpen(run, run);
    ended = await runSendLoop(run);
    const { reason } = ended;
    if (callsForAction(run, reason)) await run.announce(`outreach stopped: ${reason}`, `run/${run.runId}`);
    await settleOpen(run, run);
  } catch (fault) {
    if (fault instanceof LeaseLost) throw fault;
    run.logger.error("a run ended by a fault", { run_id: run.runId, ...errorFields(fault) });
    ended = { reason: "fault" };
  }
  const { started_at, sent, skipped, failed, in_doubt } = currentRun(run);
  const data = { run_id: run.runId, ...ended, sent, skipped, failed, in_doubt, usage: meter.usage() };
  const finished_at = await appendEnd(run, { type: "RunFinished", data });
  return { ...data, started_at, finished_at };
}

async function performDry(run: RunContext, meter: Meter): Promise<RunReport> {
  const { started_at } = currentRun(run);
  const preview = await executeDryRun(run);
  const { would_send, would_skip, variants: _variants, ...ended } = preview;
  const usage = meter.usage();
  const found = { would_send: would_send.length, would_skip: would_skip.length };
  const data = { run_id: run.runId, ...ended, ...found, usage };
  const finished_at = await appendEnd(run, { type: "DryRunFinished", data });
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  const estimate = meter.estimate(would_send.length);
  return { run_id: run.runId, ...ended, ...counts, started_at, finished_at, usage, preview: { ...preview, estimate } };
}

/** Appends the run's end and returns when it was recorded. */
async function appendEnd(run: RunContext, newEvent: NewEvent): Promise<string> {
  const { metadata, lease } = run;
  await record(run, STREAMS.outreach, [newEvent], { metadata, lease });
  return run.projector.time ?? isoTime(run.clock());
}

function currentRun(run: RunContext) {
  const { current } = run.projector.state("run");
  if (current?.run_id !== run.runId) throw new Error(`run ${run.runId} is not the one in progress`);
  return current;
}

/** Most rejected messages in a row. Each costs a recipient their message. */
const REJECTED_IN_A_ROW_MAX = 3;

/** Sends to all recipients who may be contacted, one after the other, until something ends the run. */
function runSendLoop(run: RunContext): Promise<Ended> {
  const { metadata, lease, runId: run_id } = run;
  /** When the next message may be sent, ms since the epoch. */
  let nextSendAt = 0;
  /** True if the run's last event states that time, so that no other event has to. */
  let isSaid = false;
  let rejectedInARow = 0;
  return screenRecipients(run, {
    retry: createRetry(run, run, READ_ATTEMPTS_MAX),
    pausesWhenClosed: run.rules.window?.whenClosed === "pause",
    planned: () => 0,
    async skip(refused) {
      const decide = () => ({ events: newSkips(outreachState(run), run.rules, run_id, refused) });
      const handled = await handle(run, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX });
      if ("events" in handled && handled.events.length > 0) isSaid = false;
    },
    async write(user, source) {
      // Waits before a message and not after one, because nothing follows the last one.
      if (isSaid) await run.sleep(nextSendAt - run.clock(), run.signal);
      else await run.pause("pace", nextSendAt);
      const stopped = stopReason(run);
      if (stopped !== undefined) return stopped;
      const turn = await takeTurn(run, user, source);
      const { rejected, isClosed, end } = turn;
      if (end !== undefined) return end;
      nextSendAt = turn.nextSendAt ?? nextSendAt;
      isSaid = turn.isSaid;
      // One recipient or one text may be at fault. This many in a row have only our request in common.
      rejectedInARow = rejected ? rejectedInARow + 1 : 0;
      if (isClosed) return "closed";
      return rejectedInARow >= REJECTED_IN_A_ROW_MAX ? "request_rejected" : undefined;
    },
    async finishPage(read) {
      isSaid = false;
      await record(run, STREAMS.outreach, [{ type: "SourceRead", data: { ...read, run_id } }], { metadata, lease });
    },
  });
}

/** The findings of a dry run. It asks the network who can be contacted, sends nothing and records no skip. */
export interface DryRun extends Ended {
  readonly would_send: readonly { recipient: KnownRecipient; text: string; variant: string }[];
  readonly would_skip: readonly { recipient: Recipient; reason: SkipReason; detail?: string }[];
  /** Every variant of the message, as the first of these recipients would read it. */
  readonly variants: readonly { variant: string; text: string }[];
}

async function executeDryRun(run: RunContext): Promise<DryRun> {
  const { rules, accountId } = run;
  const would_send: DryRun["would_send"][number][] = [];
  const variants: DryRun["variants"][number][] = [];
  const refused: Refused[] = [];
  const ended = await screenRecipients(run, {
    retry: createRetry(run, run, QUICK_ATTEMPTS_MAX, true),
    pausesWhenClosed: false,
    planned: () => would_send.length,
    async skip(more) {
      refused.push(...more);
    },
    async write(user, source) {
      const state = outreachState(run);
      const command = { user, attempt_id: run.makeId(), run_id: run.runId, accountId, now: quotaNow(run), source };
      const decision = decideTurn(state, rules, command);
      if ("refusal" in decision) return decision.refusal.isClosed === true ? "closed" : decision.refusal.end;
      const intent = decision.events.at(-1);
      if (intent?.type !== "DirectMessageAttempted") return undefined;
      if (would_send.length === 0) variants.push(...previewVariants(state, rules, user));
      const { recipient, text, variant } = intent.data;
      would_send.push({ recipient, text, variant });
      return undefined;
    },
    async finishPage() {},
  });
  const would_skip = toSkips(outreachState(run), refused).map(({ found: _found, ...skip }) => skip);
  return { ...ended, would_send, would_skip, variants };
}

/** Renders every variant of the template for one recipient, without variants that lack a field. */
function previewVariants({ contacts }: OutreachState, { template }: OutreachRules, user: SocialUser) {
  const known = messageRecipient(findPerson(contacts, user), user);
  return renderAll(template, known).flatMap(({ variant, rendered }) =>
    rendered.ok ? [{ variant, text: rendered.text }] : [],
  );
}
