import type { Recipient, RunEnd, SkipReason } from "../../events/outreach.ts";
import type { Fact } from "../journal.ts";
import { SocialError, type SocialUser } from "../networks/network.ts";
import { findContact } from "../../projections/contacts.ts";
import { outreachState, today, type RunContext } from "./context.ts";
import { isTold, judgeKnown, judgeUser, remaining, type Refusal } from "./decide.ts";
import { resolve } from "./lookup.ts";
import { spacingMs } from "./pace.ts";
import { patient, type Patience } from "./patience.ts";
import { appendFenced, reasonOf, takeTurn, type Turn } from "./send.ts";
import type { Candidate } from "./sources/source.ts";

/** A run, and what it carries from one batch to the next. */
interface Round extends RunContext {
  readonly patience: Patience;
  /** Network ids of those it has met: sources overlap, and a list may name a person by handle and again by id. */
  readonly met: Set<string>;
}

/** Sends to everybody who may be written to, one after the other, until something ends the run. */
export async function performRun(context: RunContext): Promise<RunEnd> {
  const round: Round = { ...context, patience: patient(context), met: new Set() };
  try {
    for (const source of context.sources) {
      for await (const batch of source.candidates(round.patience)) {
        const end = await workOff(round, batch);
        if (end !== undefined) return end;
      }
    }
    return "completed";
  } catch (fault) {
    return endOf(context, fault);
  }
}

/** Why a run ends when the network fails to answer a question; any other fault is thrown on. */
export function endOf({ log, runId, signal }: RunContext, fault: unknown): RunEnd {
  if (!(fault instanceof SocialError)) throw fault;
  if (signal.aborted) return signal.reason as RunEnd;
  log.warn("the network did not answer the run", {
    run_id: runId,
    kind: fault.kind,
    detail: fault.message,
  });
  if (fault.kind === "unauthorized") return "not_authorized";
  return fault.stop ?? "network_unavailable";
}

async function workOff(context: Round, batch: readonly Candidate[]): Promise<RunEnd | undefined> {
  const asked = await askAbout(context, await screen(context, batch));
  for (const user of asked === "limit" ? [] : asked) {
    if (context.signal.aborted) return stopReason(context);
    const turn = await takeTurn(context, user);
    if (turn.end !== undefined) return turn.end;
    if (turn.called) await pace(context, turn);
  }
  if (context.signal.aborted) return stopReason(context);
  return asked === "limit" ? "daily_limit_reached" : undefined;
}

/** Tells the skips that need no question to the network; answers the others. */
async function screen(context: Round, batch: readonly Candidate[]): Promise<readonly Candidate[]> {
  const open: Candidate[] = [];
  const refused: Refused[] = [];
  const state = outreachState(context);
  for (const candidate of batch) {
    const id = candidate.who.id ?? findContact(state.contacts, candidate.who)?.id;
    if (id !== undefined && context.met.has(id)) continue;
    const verdict = judgeKnown(state, context.rules, candidate.who);
    if (verdict.verdict === "ask") open.push(candidate);
    else refused.push({ who: candidate.who, verdict });
  }
  await tellSkips(context, refused);
  return open;
}

/** Asks the network about the batch, tells whom it rules out, and answers those who may be written to. */
async function askAbout(context: Round, open: readonly Candidate[]): Promise<readonly SocialUser[] | "limit"> {
  if (open.length === 0) return [];
  if (remaining(outreachState(context), context.rules, today(context)) === 0) return "limit";
  const resolved = await context.patience(() => resolve(context.network, context.credentials, open));
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
  await tellSkips(context, refused);
  return users;
}

interface Refused {
  readonly who: Recipient;
  readonly verdict: Refusal;
}

/** Appends each skip that the log does not tell yet, all in one append. */
async function tellSkips(context: RunContext, refused: readonly Refused[]): Promise<void> {
  for (;;) {
    const state = outreachState(context);
    const told = new Set<string>();
    const facts = refused.flatMap(({ who, verdict }): Fact[] => {
      if (verdict.verdict === "pass" || isTold(state, who, verdict.reason)) return [];
      const once = skipKey(who, verdict.reason);
      if (told.has(once)) return [];
      told.add(once);
      return [
        {
          type: "DirectMessageSkipped",
          data: { run_id: context.runId, recipient: who, ...reasonOf(verdict) },
        },
      ];
    });
    if (facts.length === 0 || (await appendFenced(context, facts, state.run.version))) return;
  }
}

function skipKey(who: Recipient, reason: SkipReason): string {
  return `${who.id ?? who.username?.toLowerCase()} ${reason}`;
}

async function pace(context: RunContext, { rate }: Turn): Promise<void> {
  await context.sleep(spacingMs(rate, context.clock(), context.spacingMs), context.signal);
}

/** The signal's reason is the run's end. */
function stopReason(context: RunContext): RunEnd {
  return context.signal.reason as RunEnd;
}
