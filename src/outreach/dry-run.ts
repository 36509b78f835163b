import type { KnownRecipient, Recipient, RunEnd, SkipReason } from "../../events/outreach.ts";
import { outreachState, quotaNow, type RunContext } from "./context.ts";
import { decideTurn, remaining, skipsOf, type Refused } from "./decide.ts";
import { previewVariants } from "./judge.ts";
import { retryBriefly } from "./retry-after-rate-limit.ts";
import { screenRecipients } from "./screening.ts";

/** What a run would do now. It asks the network who can be written to, sends nothing and records no skip. */
export interface DryRun {
  readonly reason: RunEnd;
  readonly would_send: readonly { recipient: KnownRecipient; text: string; variant: string }[];
  readonly would_skip: readonly { recipient: Recipient; reason: SkipReason }[];
  /** Every variant of the message, as the first of those would read it. */
  readonly variants: readonly { variant: string; text: string }[];
}

export async function executeDryRun(run: RunContext): Promise<DryRun> {
  const { rules, accountId } = run;
  const would_send: DryRun["would_send"][number][] = [];
  const variants: DryRun["variants"][number][] = [];
  const refused: Refused[] = [];
  const reason = await screenRecipients(run, {
    retry: retryBriefly(run),
    placesLeft: () => remaining(outreachState(run), rules, quotaNow(run)) - would_send.length,
    async skip(more) {
      refused.push(...more);
    },
    async write(user) {
      const state = outreachState(run);
      const command = { user, attempt_id: run.makeId(), run_id: run.runId, accountId, now: quotaNow(run) };
      const decision = decideTurn(state, rules, command);
      if ("refusal" in decision) return decision.refusal.end;
      const [intent] = decision.events;
      if (intent?.type !== "DirectMessageAttempted") return undefined;
      if (would_send.length === 0) variants.push(...previewVariants(state, rules, user));
      const { recipient, text, variant } = intent.data;
      would_send.push({ recipient, text, variant });
      return undefined;
    },
    async finishPage() {},
  });
  const would_skip = skipsOf(outreachState(run), refused).map(({ recipient, reason: why }) => ({
    recipient,
    reason: why,
  }));
  return { reason, would_send, would_skip, variants };
}
