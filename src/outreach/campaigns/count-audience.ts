import type { Audience } from "../../../events/campaign.ts";
import { createTimeSlices } from "../../platform/work-in-time-slices.ts";
import { judgeKnown, type OutreachRules, type OutreachState } from "../decide.ts";
import { LEFT_OUT_REASONS, matchesAudience, type LeftOutReason } from "./audience.ts";

/** How many recipients belong to an audience, how many of them may get a message now, and why the others may not. */
export interface AudienceCount {
  readonly known: number;
  readonly matching: number;
  readonly due: number;
  /** Recipients outside the audience by the condition that leaves them out, in the order of the conditions. */
  readonly left_out: readonly { readonly reason: LeftOutReason; readonly recipients: number }[];
  /** Recipients in the audience who get no message now, by the reason; the most frequent first. */
  readonly not_due: readonly { readonly reason: string; readonly recipients: number }[];
}

/** Reason why recipients get no message of a campaign whose text the settings cannot send. */
const UNUSABLE_TEXT = "unusable_text";

/** Number of recipients that are judged between two looks at the clock: some hundredths of a millisecond. */
const CLOCK_EVERY = 32;

/**
 * Counts an audience, in slices of some milliseconds. `rules`: by these a run for the audience would decide, before it
 * asks the network.
 */
export async function countAudience(
  state: OutreachState,
  audience: Audience,
  rules: OutreachRules,
): Promise<AudienceCount> {
  const [outside, inside] = [new Map<LeftOutReason, number>(), new Map<string, number>()];
  let [matching, due] = [0, 0];
  const slices = createTimeSlices();
  let looked = 0;
  for (const contact of state.contacts.people.values()) {
    // The clock is read only once for every 32 recipients. Reading it for each recipient would take a tenth of the time
    // of the count.
    if (++looked % CLOCK_EVERY === 0 && slices.isOver()) await slices.next();
    const found = matchesAudience(audience, contact, state, state.ms);
    if (!found.matches) {
      add(outside, found.reason);
      continue;
    }
    matching++;
    const verdict = judgeKnown(state, rules, contact, undefined, contact);
    if (rules.textFault !== undefined) add(inside, UNUSABLE_TEXT);
    else if (verdict.verdict === "ask") due++;
    else add(inside, verdict.reason === "not_in_audience" ? verdict.detail : verdict.reason);
  }
  const left_out = LEFT_OUT_REASONS.flatMap((reason) => {
    const recipients = outside.get(reason);
    return recipients === undefined ? [] : [{ reason, recipients }];
  });
  const not_due = [...inside].map(([reason, recipients]) => ({ reason, recipients }));
  not_due.sort((before, after) => after.recipients - before.recipients);
  return { known: state.contacts.people.size, matching, due, left_out, not_due };
}

function add<Reason>(counts: Map<Reason, number>, reason: Reason): void {
  counts.set(reason, (counts.get(reason) ?? 0) + 1);
}
