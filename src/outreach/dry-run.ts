import type { KnownRecipient, Recipient, RunEnd, SkipReason } from "../../events/outreach.ts";
import { outreachState, today, type RunContext } from "./context.ts";
import { judgeKnown, judgeUser, remaining, type Refusal } from "./decide.ts";
import { resolve } from "./lookup.ts";
import { impatient } from "./patience.ts";
import { endOf } from "./run.ts";
import type { Candidate } from "./sources/source.ts";

/** What a run would do now. It asks the network who can be written to, sends nothing and records no skip. */
export interface DryRun {
  readonly reason: RunEnd;
  readonly would_send: {
    recipient: KnownRecipient;
    text: string;
    variant: string;
  }[];
  readonly would_skip: { recipient: Recipient; reason: SkipReason }[];
}

export async function performDryRun(context: RunContext): Promise<DryRun> {
  const preview: DryRun = {
    reason: "completed",
    would_send: [],
    would_skip: [],
  };
  const met = new Set<string>();
  try {
    for (const source of context.sources) {
      for await (const batch of source.candidates(impatient)) {
        if (context.signal.aborted) return { ...preview, reason: context.signal.reason as RunEnd };
        if (await previewBatch(context, preview, met, batch)) return { ...preview, reason: "daily_limit_reached" };
      }
    }
    return preview;
  } catch (fault) {
    return { ...preview, reason: endOf(context, fault) };
  }
}

/** True when the day's quota would be used up. */
async function previewBatch(
  context: RunContext,
  preview: DryRun,
  met: Set<string>,
  batch: readonly Candidate[],
): Promise<boolean> {
  const places = () => remaining(outreachState(context), context.rules, today(context)) - preview.would_send.length;
  const skip = (recipient: Recipient, verdict: Refusal): void => {
    if (verdict.verdict === "skip") preview.would_skip.push({ recipient, reason: verdict.reason });
  };
  const open: Candidate[] = [];
  for (const candidate of batch) {
    if (candidate.who.id !== undefined && met.has(candidate.who.id)) continue;
    const verdict = judgeKnown(outreachState(context), context.rules, candidate.who);
    if (verdict.verdict === "ask") open.push(candidate);
    else skip(candidate.who, verdict);
  }
  if (open.length === 0) return false;
  if (places() <= 0) return true;
  for (const { candidate, user } of await resolve(context.network, context.credentials, open)) {
    if (user === undefined) {
      skip(candidate.who, { verdict: "skip", reason: "invalid_recipient" });
      continue;
    }
    if (met.has(user.id)) continue;
    met.add(user.id);
    const recipient = { id: user.id, username: user.username };
    const verdict = judgeUser(outreachState(context), context.rules, user);
    if (verdict.verdict !== "write") skip(recipient, verdict);
    else if (places() <= 0) return true;
    else {
      preview.would_send.push({
        recipient,
        text: verdict.text,
        variant: verdict.variant,
      });
    }
  }
  return false;
}
