import type { RunEnd } from "../../events/outreach.ts";
import { isoTime } from "../platform/clock.ts";
import { STREAMS } from "../log/event-log.ts";
import { handle, record } from "../log/handle.ts";
import { SocialError, type SentDm, type SocialUser } from "../networks/network.ts";
import { findContact } from "../../projections/contacts.ts";
import {
  LOOKUP_BATCH,
  outreachState,
  quotaNow,
  type Batch,
  type Candidate,
  type Reader,
  type RunContext,
  type Source,
} from "./context.ts";
import { isHeldBack, isKnownClosed, judgeKnown, judgeUser, remaining } from "./decide.ts";
import { skipsOf, type Refused } from "./decide-turn.ts";
import { readInbox } from "./inbox.ts";
import { resolve } from "./lookup.ts";
import { spacingMs } from "./pacing.ts";
import { retryPersistently } from "./retry-after-rate-limit.ts";
import { pause } from "./pause.ts";
import { findOurs, wasRestoredToday } from "./restored.ts";
import { takeTurn, type Turn } from "./send.ts";

/** A run, and what it carries from one batch to the next. */
interface Round extends RunContext {
  readonly reader: Reader;
  /** Network ids of those it has met: sources overlap, and a list may name a person by handle and again by id. */
  readonly met: Set<string>;
  /** When the next message may go out, ms since the epoch. */
  nextSendAt: number;
  /** Messages in a row that the network refused for what they are. */
  rejected: number;
}

/** Each costs a person their message. */
const REJECTED_IN_A_ROW_MAX = 3;

/** Sends to everybody who may be written to, one after the other, until something ends the run. */
export async function runSendLoop(context: RunContext): Promise<RunEnd> {
  const retry = retryPersistently(context);
  const wanted = (): number => Math.min(LOOKUP_BATCH, Math.max(1, placesLeft(context)));
  if (wasRestoredToday(context)) return "log_restored";
  const round: Round = {
    ...context,
    reader: { run: context, retry, wanted },
    met: new Set(),
    nextSendAt: 0,
    rejected: 0,
  };
  try {
    // Who asked to be left alone meanwhile is known before anybody is judged.
    await readInbox(context, retry);
    for (const source of context.sources) {
      if (context.signal.aborted) return stopReason(context);
      const end = await workOffSource(round, source);
      if (end !== undefined) return end;
    }
    return context.signal.aborted ? stopReason(context) : "completed";
  } catch (fault) {
    return endOf(context, fault);
  }
}

async function workOffSource(round: Round, source: Source): Promise<RunEnd | undefined> {
  if (source.paid && placesLeft(round) === 0) return "daily_limit_reached";
  for await (const batch of source.candidates(round.reader)) {
    const end = await workOff(round, source, batch.candidates);
    if (end !== undefined) return end;
    if (batch.read !== undefined) await recordRead(round, batch.read);
    // Reading on would only tell whether anybody is left, and cost money.
    if (source.paid && placesLeft(round) === 0) return "daily_limit_reached";
  }
  return undefined;
}

function placesLeft(context: RunContext): number {
  return remaining(outreachState(context), context.rules, quotaNow(context));
}

async function recordRead(context: RunContext, read: NonNullable<Batch["read"]>): Promise<void> {
  const { metadata, fence } = context;
  const data = { ...read, run_id: context.runId };
  await record(context, STREAMS.outreach, [{ type: "SourceRead", data }], { metadata, fence });
}

/** Why a run ends when the network fails to answer a question; any other fault is thrown on. */
export function endOf({ logger, runId, signal }: RunContext, fault: unknown): RunEnd {
  if (!(fault instanceof SocialError)) throw fault;
  if (signal.aborted) return signal.reason as RunEnd;
  logger.warn("the network did not answer the run", {
    run_id: runId,
    kind: fault.kind,
    detail: fault.message,
  });
  if (fault.kind === "unauthorized") return "not_authorized";
  if (fault.kind === "rejected") return "request_rejected";
  return fault.stop ?? "network_unavailable";
}

async function workOff(context: Round, source: Source, candidates: readonly Candidate[]): Promise<RunEnd | undefined> {
  const open = await screen(context, source, candidates);
  for (let at = 0; at < open.length;) {
    if (context.signal.aborted) return stopReason(context);
    if (placesLeft(context) === 0) return "daily_limit_reached";
    // A look-up is paid for each person, so no more are asked about than there are places.
    const size = context.reader.wanted();
    const end = await writeTo(context, await askAbout(context, open.slice(at, at + size)));
    if (end !== undefined) return end;
    at += size;
  }
  return context.signal.aborted ? stopReason(context) : undefined;
}

async function writeTo(context: Round, users: readonly SocialUser[]): Promise<RunEnd | undefined> {
  for (const user of users) {
    if (context.signal.aborted) return stopReason(context);
    const ours = await findOurs(context, context.reader.retry, user);
    if (ours !== "none") {
      if (ours !== "unknown") await tellFound(context, user, ours);
      continue;
    }
    await pace(context);
    if (context.signal.aborted) return stopReason(context);
    const turn = await takeTurn(context, user);
    if (turn.end !== undefined) return turn.end;
    if (turn.called) planNext(context, turn);
    context.rejected = turn.rejected ? context.rejected + 1 : 0;
    // One person may be at fault, or one text; this many in a row have our request in common.
    if (context.rejected >= REJECTED_IN_A_ROW_MAX) return "request_rejected";
  }
  return undefined;
}

function tellFound(context: Round, { id, username }: SocialUser, ours: SentDm): Promise<void> {
  const found = { message_id: ours.id, sent_at: isoTime(ours.createdAt) };
  const verdict = { verdict: "skip", reason: "already_contacted", found } as const;
  return recordSkips(context, [{ who: { id, username }, verdict }]);
}

/** Tells the skips that need no question to the network; answers the others. */
async function screen(context: Round, source: Source, batch: readonly Candidate[]): Promise<readonly Candidate[]> {
  const open: Candidate[] = [];
  const refused: Refused[] = [];
  const state = outreachState(context);
  for (const candidate of batch) {
    const id = candidate.who.id ?? findContact(state.contacts, candidate.who)?.id;
    if ((id !== undefined && context.met.has(id)) || isHeldBack(state, source, candidate.who)) continue;
    const verdict = judgeKnown(state, context.rules, candidate.who);
    if (verdict.verdict !== "ask") refused.push({ who: candidate.who, verdict });
    // Who was closed to us would be asked about in every run, for money; a new import has them asked about again.
    else if (candidate.user !== undefined || !isKnownClosed(state, candidate.who)) open.push(candidate);
  }
  await recordSkips(context, refused);
  return open;
}

/** Asks the network about the batch, tells whom it rules out, and answers those who may be written to. */
async function askAbout(context: Round, open: readonly Candidate[]): Promise<readonly SocialUser[]> {
  const { retry } = context.reader;
  const resolved = await retry(() => resolve(context.network, context.credentials, open));
  const users: SocialUser[] = [];
  const refused: Refused[] = [];
  for (const { candidate, user } of resolved) {
    if (user === undefined) {
      refused.push({
        who: candidate.who,
        verdict: { verdict: "skip", reason: "invalid_recipient" },
      });
      continue;
    }
    if (context.met.has(user.id)) continue;
    context.met.add(user.id);
    const verdict = judgeUser(outreachState(context), context.rules, user);
    if (verdict.verdict === "write") users.push(user);
    else refused.push({ who: { id: user.id, username: user.username }, verdict });
  }
  await recordSkips(context, refused);
  return users;
}

/** Records the skips that the log does not tell yet, all in one append. */
async function recordSkips(context: RunContext, refused: readonly Refused[]): Promise<void> {
  const { metadata, fence } = context;
  const decide = () => ({ events: skipsOf(outreachState(context), context.runId, refused) });
  await handle(context, STREAMS.outreach, decide, { metadata, fence });
}

/** Waits before a message and not after one: after the last there is nothing to wait for. */
function pace(context: Round): Promise<void> {
  return pause(context, "pace", context.nextSendAt);
}

function planNext(context: Round, { rate }: Turn): void {
  const now = context.clock();
  context.nextSendAt = now + spacingMs(rate, now, context.spacingMs, context.random());
}

/** The signal's reason is the run's end. */
function stopReason(context: RunContext): RunEnd {
  return context.signal.reason as RunEnd;
}
