import type { Recorded } from "../../../events/catalog.ts";
import type { Basis, Recipient } from "../../../events/outreach.ts";
import { findContact } from "../../../projections/contacts.ts";
import { isDecision, readRequestedChannels, sourcesOfEvent } from "../../history/dispatch-outcomes.ts";
import { isOutcome } from "../../../events/dispatches.ts";
import { findRunStart } from "../../history/run-events.ts";
import { eventsAt } from "../../log/event-log.ts";
import { effectiveBasis } from "../people-filter.ts";
import { toReading, type View } from "../page-context.ts";

/** Most events listed as causes: a batch of clicks may have a thousand. */
const CAUSES_SHOWN = 20;

/** Newest events of a recipient that are searched for related ones; most recipients have fewer. */
const EVENTS_READ = 200;

/**
 * The known causes of an event. A dispatch's outcome, or a decision on it, has its click or request. An event on a
 * recipient in a run has the start of the run, and the grounds for writing or the attempt.
 */
export async function findCauses(view: View<"contacts">, event: Recorded): Promise<readonly Recorded[]> {
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

/**
 * The effects of an event, except dispatches: an attempt to send has its outcome. Clicks are attributed to no message.
 */
export async function findEffects(view: View<"contacts">, event: Recorded): Promise<readonly Recorded[]> {
  if (event.type !== "DirectMessageAttempted") return [];
  const events = await eventsAbout(view, event.data.recipient);
  return events.filter((one) => one.position > event.position && isOfAttempt(one, event)).toReversed();
}

function isOfAttempt({ data: one }: Recorded, { data: other }: Recorded): boolean {
  return "attempt_id" in one && "attempt_id" in other && one.attempt_id === other.attempt_id;
}

/** The events about a recipient, the newest first. */
async function eventsAbout(view: View<"contacts">, recipient: Recipient): Promise<readonly Recorded[]> {
  const positions = findContact(view.state("contacts"), recipient)?.positions ?? [];
  return (await Array.fromAsync(eventsAt(view.store, positions.slice(-EVENTS_READ)))).toReversed();
}

/** The event that proves why we may write to a recipient. `events` are theirs, the newest first. */
export function findGrounds(basis: Basis, events: readonly Recorded[]): Recorded | undefined {
  const wrote = events.findLast(({ type }) => type === "DirectMessageReceived");
  const imported = events.find(
    ({ type, data }) => (type === "RecipientAdded" || type === "ConsentRecorded") && data.basis !== undefined,
  );
  return (basis === "dm_first" ? wrote : undefined) ?? imported;
}
