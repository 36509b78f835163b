import type { KnownRecipient, Recipient, SkipReason, Usage } from "../../../events/outreach.ts";
import { isRequested, type RunState } from "../../../projections/current-run.ts";
import { record } from "../../log/decide-and-append.ts";
import { STREAMS, type NewEvent } from "../../log/event-log.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { RunContext } from "../run-context.ts";
import type { Refused } from "../decide.ts";
import { toRequestKey } from "../requested/recipients-named-in-trigger.ts";
import type { RunSelection } from "../quota-and-reasons-to-end-run.ts";
import type { Ended } from "../screening.ts";

/** Findings of a dry run. A dry run asks the network who can be contacted, sends nothing and records no skip. */
export interface DryRun extends Ended {
  readonly would_send: readonly { recipient: KnownRecipient; text: string; variant: string }[];
  readonly would_skip: readonly { recipient: Recipient; reason: SkipReason; detail?: string }[];
  /** Texts of all variants of the message, each rendered for the first recipient that the dry run would write to. */
  readonly variants: readonly { variant: string; text: string }[];
}

/** The result of a dry run, as the API answers it. */
export interface DryRunAnswer extends RunSelection, DryRun {
  /** Upper bounds of what the network charges for the dry run. */
  readonly usage: Usage;
  /** Upper bounds of what the network would charge for the run. */
  readonly estimate: Usage;
  /** Warnings for the operator, such as of a message without a way to opt out. */
  readonly notes?: readonly string[];
}

/**
 * Maximum number of recipients that a dry run lists for each skip reason. A list without consents may have 100,000 with
 * the same reason.
 */
const LISTED_SKIPS_MAX = 100;

/** Maximum number of events in one append, because other appends wait until it is done. */
const APPENDED_TOGETHER = 500;

/** Appends the events that list the recipients of a dry run. The caller appends the end of the dry run after them. */
export async function recordListed(run: RunContext, found: DryRun, names: ReadonlyMap<string, string>): Promise<void> {
  const { metadata, lease } = run;
  const listed = listRecipients(run.projector.state("run").current, found, names, run.runId);
  for (let at = 0; at < listed.length; at += APPENDED_TOGETHER) {
    await record(run, STREAMS.outreach, listed.slice(at, at + APPENDED_TOGETHER), { metadata, lease });
  }
}

/**
 * Makes the events that list recipients of a dry run: first some who would be skipped, then all who would get a
 * message. Recipients contacted earlier are left out unless requested. `names`: names that only the network knows, by
 * id.
 */
function listRecipients(
  current: RunState | null,
  found: DryRun,
  names: ReadonlyMap<string, string>,
  run_id: string,
): NewEvent[] {
  const counts = new Map<SkipReason, number>();
  const skips = found.would_skip.filter(({ recipient, reason }) => {
    if (isRequested(current, recipient)) return true;
    // The log already holds the messages to contacted recipients, so it would gain nothing if each dry run listed these
    // recipients.
    if (reason === "already_contacted") return false;
    const count = (counts.get(reason) ?? 0) + 1;
    counts.set(reason, count);
    return count <= LISTED_SKIPS_MAX;
  });
  return [
    ...skips.map((skip): NewEvent => ({ type: "DryRunRecipientListed", data: { run_id, ...skip } })),
    ...found.would_send.map(({ recipient, variant }): NewEvent => {
      const name = names.get(recipient.id);
      return { type: "DryRunRecipientListed", data: { run_id, recipient, ...omitUndefined({ name }), variant } };
    }),
  ];
}

/** Counts the messages by variant, and the skipped recipients by reason. */
export function countFound({ would_send, would_skip }: DryRun) {
  return {
    would_send: would_send.length,
    would_skip: would_skip.length,
    variants: countBy(would_send.map(({ variant }) => variant)),
    skips: countBy(would_skip.map(({ reason }) => reason)),
  };
}

/**
 * Counts the recipients who would get no message and of which a run would record no skip, by reason. Several sources may
 * name a recipient, who counts once. Empty if there are none.
 */
export function countPassed(refused: readonly Refused[]) {
  const passed = new Map<string, string>();
  for (const { recipient, verdict } of refused)
    if (verdict.verdict === "pass") passed.set(toRequestKey(recipient), verdict.reason);
  return passed.size === 0 ? {} : { passed: countBy([...passed.values()]) };
}

function countBy(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
