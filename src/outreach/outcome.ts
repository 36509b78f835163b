import type { Run } from "../../projections/run.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import { handle, type Decision } from "../log/handle.ts";
import type { OutreachContext } from "./context.ts";
import type { OutcomeEvent } from "./decide.ts";

/** What the network did is recorded however busy the stream is: given up, it would count as in doubt. */
const OUTCOME_ATTEMPTS_MAX = 50;

/**
 * Records the outcome of an attempt and what follows from it, unless the attempt is settled already. It gets at most one
 * final outcome, and is in doubt once, whether the run, the next start or another instance looks at it.
 */
export async function recordOutcome(
  context: OutreachContext,
  newEvent: OutcomeEvent,
  metadata: EventMetadata,
  more: readonly NewEvent[] = [],
): Promise<void> {
  const decide = () => decideRecorded(context.projector.state("run"), newEvent, more);
  await handle(context, STREAMS.outreach, decide, { metadata, attempts: OUTCOME_ATTEMPTS_MAX });
}

/** The outcome and what follows from it; nothing of an attempt that has its outcome, or was doubted before. */
export function decideRecorded({ open }: Run, newEvent: OutcomeEvent, more: readonly NewEvent[]): Decision<never> {
  const attempt = open.get(newEvent.data.attempt_id);
  if (attempt === undefined || (newEvent.type === "DirectMessageInDoubt" && attempt.in_doubt)) return { events: [] };
  return { events: [newEvent, ...more] };
}
