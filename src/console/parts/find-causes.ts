import type { Recorded } from "../../../events/catalog.ts";
import type { Basis, Recipient } from "../../../events/outreach.ts";
import { findContact } from "../../../projections/contacts.ts";
import { isDecision, readRequestedChannels, sourcesOfEvent } from "../../history/dispatch-outcomes.ts";
import { isOutcome } from "../../../events/dispatches.ts";
import { findRunStart } from "../../history/run-events.ts";
import { eventsAt } from "../../log/event-log.ts";
import { effectiveBasis } from "../people-filter.ts";
import { toReading, type View } from "../page-context.ts";

/** Events listed as causes: a batch of clicks may have a thousand. */
const CAUSES_SHOWN = 20;

/** Events of a recipient looked through for what belongs together: of most recipients these are all. */
const EVENTS_READ = 200;

/**
 * What caused the event, as far as the log says: of an outcome of a dispatch, or a decision on one, the click or request;
 * of what concerns one recipient in a run, the start of the run, the grounds for writing, and the attempt.
 */
export async function findCauses(view: View, event: Recorded): Promise<readonly Recorded[]> {
  const reading = toReading(view);
  if (isOutcome(event) || isDecision(event)) {
    const sources = await sourcesOfEvent(reading, await readRequestedChannels(reading), event);
    return sources.slice(0, CAUSES_SHOWN);
  }
  const { data, position } = event;
  const start = "run_id" in data && event.type !== "RunStarted" ? await findRunStart(reading, data.run_id) : undefined;
  const started = start === undefined ? [] : await Array.fromAsync(eventsAt(view.store, [start]));
  if (!("run_id" in data) || !("recipient" in data)) return started;
  const earlier = (await eventsAbout(view, data.recipient)).filter((one) => one.position < position);
  const attempt = earlier.find((one) => one.type === "DirectMessageAttempted" && isOfAttempt(one, event));
  const contact = findContact(view.state("contacts"), data.recipient);
  const grounds = attempt === undefined && contact ? findGrounds(effectiveBasis(contact), earlier) : undefined;
  return [...started, grounds, attempt].filter((one) => one !== undefined);
}

/** What the event caused beside dispatches: of an attempt to send, its outcome. Clicks are attributed to no message. */
export async function findEffects(view: View, event: Recorded): Promise<readonly Recorded[]> {
  if (event.type !== "DirectMessageAttempted") return [];
  const events = await eventsAbout(view, event.data.recipient);
  return events.filter((one) => one.position > event.position && isOfAttempt(one, event)).toReversed();
}

function isOfAttempt({ data: one }: Recorded, { data: other }: Recorded): boolean {
  return "attempt_id" in one && "attempt_id" in other && one.attempt_id === other.attempt_id;
}

/** The newest first. */
async function eventsAbout(view: View, recipient: Recipient): Promise<readonly Recorded[]> {
  const positions = findContact(view.state("contacts"), recipient)?.positions ?? [];
  return (await Array.fromAsync(eventsAt(view.store, positions.slice(-EVENTS_READ)))).toReversed();
}

/** The event that proves why we may write to a recipient; `events`: theirs, the newest first. */
export function findGrounds(basis: Basis, events: readonly Recorded[]): Recorded | undefined {
  const wrote = events.findLast(({ type }) => type === "DirectMessageReceived");
  const imported = events.find(
    ({ type, data }) => (type === "RecipientAdded" || type === "ConsentRecorded") && data.basis !== undefined,
  );
  return (basis === "dm_first" ? wrote : undefined) ?? imported;
}
