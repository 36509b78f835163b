import { VersionConflict } from "eventstore-lite";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import { catchUp, type OutreachContext } from "./context.ts";

/** What became of an attempt. */
export type OutcomeEvent = Extract<
  NewEvent,
  { type: "DirectMessageSent" | "DirectMessageFailed" | "DirectMessageInDoubt" }
>;

/**
 * Records what became of an attempt, and what follows from it, unless it is settled already: an attempt has at most one
 * final outcome, and is doubted once, whoever looks at it (the run that sent it, the next start, another instance).
 */
export async function recordOutcome(
  context: OutreachContext,
  newEvent: OutcomeEvent,
  metadata: EventMetadata,
  more: readonly NewEvent[] = [],
): Promise<void> {
  for (;;) {
    const { open, version } = context.projector.state("run");
    const attempt = open.get(newEvent.data.attempt_id);
    if (attempt === undefined || (newEvent.type === "DirectMessageInDoubt" && attempt.in_doubt)) return;
    try {
      const appended = await context.eventLog.append(STREAMS.outreach, [newEvent, ...more], metadata, {
        expected: version,
      });
      await context.projector.until(appended.last);
      return;
    } catch (fault) {
      if (!(fault instanceof VersionConflict)) throw fault;
      await catchUp(context);
    }
  }
}
