import type { KnownRecipient, Recipient, RunEnd, SkipReason } from "../../events/outreach.ts";
import { findContact } from "../../projections/contacts.ts";
import {
  LOOKUP_BATCH,
  outreachState,
  quotaNow,
  type Candidate,
  type Reader,
  type RunContext,
  type Source,
} from "./context.ts";
import { isHeldBack, judgeKnown, judgeUser, previewVariants, remaining, type Refusal } from "./decide.ts";
import { readInbox } from "./inbox.ts";
import { resolve } from "./lookup.ts";
import { retryBriefly } from "./retry-after-rate-limit.ts";
import { findOurs, wasRestoredToday } from "./restored.ts";
import { endOf } from "./send-loop.ts";

/** What a run would do now. It asks the network who can be written to, sends nothing and records no skip. */
export interface DryRun {
  readonly reason: RunEnd;
  readonly would_send: {
    recipient: KnownRecipient;
    text: string;
    variant: string;
  }[];
  readonly would_skip: { recipient: Recipient; reason: SkipReason }[];
  /** Every variant of the message, as the first of those would read it. */
  readonly variants: { variant: string; text: string }[];
}

export async function executeDryRun(context: RunContext): Promise<DryRun> {
  const preview: DryRun = { reason: "completed", would_send: [], would_skip: [], variants: [] };
  const left = (): number =>
    remaining(outreachState(context), context.rules, quotaNow(context)) - preview.would_send.length;
  const wanted = (): number => Math.min(LOOKUP_BATCH, Math.max(1, left()));
  const retry = retryBriefly(context);
  const rehearsal: Rehearsal = {
    ...context,
    reader: { run: context, retry, wanted },
    preview,
    left,
    met: new Set(),
  };
  try {
    if (wasRestoredToday(context)) return { ...preview, reason: "log_restored" };
    await readInbox(context, retry);
    for (const source of context.sources) {
      if (context.signal.aborted) break;
      const end = await rehearse(rehearsal, source);
      if (end !== undefined) return { ...preview, reason: end };
    }
    return context.signal.aborted ? { ...preview, reason: context.signal.reason as RunEnd } : preview;
  } catch (fault) {
    return { ...preview, reason: endOf(context, fault) };
  }
}

/** A dry run, and what it found so far. */
interface Rehearsal extends RunContext {
  readonly reader: Reader;
  readonly preview: DryRun;
  /** Places left of the day's quota, less what would be sent. */
  readonly left: () => number;
  readonly met: Set<string>;
}

async function rehearse(context: Rehearsal, source: Source): Promise<RunEnd | undefined> {
  if (source.paid && context.left() <= 0) return "daily_limit_reached";
  for await (const { candidates } of source.candidates(context.reader)) {
    const open = screen(context, source, candidates);
    for (let at = 0; at < open.length;) {
      if (context.left() <= 0) return "daily_limit_reached";
      const size = context.reader.wanted();
      await previewSome(context, open.slice(at, at + size));
      at += size;
    }
    if (context.signal.aborted) return context.signal.reason as RunEnd;
    if (source.paid && context.left() <= 0) return "daily_limit_reached";
  }
  return undefined;
}

function screen(context: Rehearsal, source: Source, candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates.filter(({ who }) => {
    const state = outreachState(context);
    const id = who.id ?? findContact(state.contacts, who)?.id;
    if ((id !== undefined && context.met.has(id)) || isHeldBack(state, source, who)) return false;
    const verdict = judgeKnown(state, context.rules, who);
    if (verdict.verdict === "ask") return true;
    if (id !== undefined) context.met.add(id);
    skip(context, who, verdict);
    return false;
  });
}

async function previewSome(context: Rehearsal, open: readonly Candidate[]): Promise<void> {
  const { retry } = context.reader;
  for (const { candidate, user } of await retry(() => resolve(context.network, context.credentials, open))) {
    if (user === undefined) {
      skip(context, candidate.who, { verdict: "skip", reason: "invalid_recipient" });
      continue;
    }
    if (context.met.has(user.id)) continue;
    context.met.add(user.id);
    const recipient = { id: user.id, username: user.username };
    const verdict = judgeUser(outreachState(context), context.rules, user);
    if (verdict.verdict !== "write") {
      skip(context, recipient, verdict);
      continue;
    }
    const ours = await findOurs(context, retry, user);
    if (ours !== "none") {
      if (ours !== "unknown") skip(context, recipient, { verdict: "skip", reason: "already_contacted" });
      continue;
    }
    const { would_send, variants } = context.preview;
    if (would_send.length === 0) variants.push(...previewVariants(outreachState(context), context.rules, user));
    would_send.push({ recipient, text: verdict.text, variant: verdict.variant });
  }
}

function skip({ preview }: Rehearsal, recipient: Recipient, verdict: Refusal): void {
  if (verdict.verdict === "skip") preview.would_skip.push({ recipient, reason: verdict.reason });
}
