import type { Recorded } from "../../events/event-types-and-codec.ts";
import { isOutcome } from "../../events/dispatches-requested-by-events.ts";
import type { Basis, Recipient } from "../../events/outreach.ts";
import { findContact } from "../../projections/contact-identity.ts";
import type { Contact } from "../../projections/contact-state.ts";
import { eventsAt } from "../log/event-log.ts";
import type { PageMoment } from "../projector/moment-of-console-page.ts";
import { isDecision, readRequestedChannels, sourcesOfEvent } from "./dispatch-outcomes.ts";
import { toReading } from "./find-event.ts";
import { findRunStart } from "./find-run-events.ts";

/** Maximum number of events listed as causes of one event. A batch of clicks may have a thousand. */
const CAUSES_SHOWN = 20;

/** Number of newest events about a recipient that are searched for causes and effects. Most recipients have fewer. */
const EVENTS_READ = 200;

/**
 * Finds the causes of an event. An outcome of a dispatch, or a decision about it, was caused by the click or request.
 * An event about a recipient in a run was caused by the run's start, and by the recipient's consent or the attempt to
 * send.
 */
export async function findCauses(moment: PageMoment<"contacts">, event: Recorded): Promise<readonly Recorded[]> {
  const reading = toReading(moment);
  if (isOutcome(event) || isDecision(event)) {
    const sources = await sourcesOfEvent(reading, await readRequestedChannels(reading), event);
    return sources.slice(0, CAUSES_SHOWN);
  }
  const { data, position } = event;
  const start = "run_id" in data && event.type !== "RunStarted" ? await findRunStart(reading, data.run_id) : undefined;
  const started = start === undefined ? [] : await Array.fromAsync(eventsAt(moment.store, [start]));
  if (!("run_id" in data) || !("recipient" in data)) return started;
  const earlier = (await eventsAbout(moment, data.recipient)).filter((one) => one.position < position);
  const attempt = earlier.find((one) => one.type === "DirectMessageAttempted" && isOfAttempt(one, event));
  const contact = findContact(moment.state("contacts"), data.recipient);
  const grounds = attempt === undefined && contact ? findGrounds(effectiveBasis(contact), earlier) : undefined;
  return [...started, grounds, attempt].filter((one) => one !== undefined);
}

/**
 * Finds the effects of an event: for an attempt to send a message, the later events about the same attempt, such as its
 * outcome. Outcomes of dispatches are read elsewhere, and a click is no effect of a message.
 */
export async function findEffects(moment: PageMoment<"contacts">, event: Recorded): Promise<readonly Recorded[]> {
  if (event.type !== "DirectMessageAttempted") return [];
  const events = await eventsAbout(moment, event.data.recipient);
  return events.filter((one) => one.position > event.position && isOfAttempt(one, event)).toReversed();
}

function isOfAttempt({ data: one }: Recorded, { data: other }: Recorded): boolean {
  return "attempt_id" in one && "attempt_id" in other && one.attempt_id === other.attempt_id;
}

/** Reads the newest events about a recipient, newest first. */
async function eventsAbout(moment: PageMoment<"contacts">, recipient: Recipient): Promise<readonly Recorded[]> {
  const positions = findContact(moment.state("contacts"), recipient)?.positions ?? [];
  return (await Array.fromAsync(eventsAt(moment.store, positions.slice(-EVENTS_READ)))).toReversed();
}

/**
 * Finds the event that gives the right to write to a recipient, such as a consent. `events`: those about the recipient,
 * newest first.
 */
export function findGrounds(basis: Basis, events: readonly Recorded[]): Recorded | undefined {
  const wrote = events.findLast(({ type }) => type === "DirectMessageReceived");
  const imported = events.find(
    ({ type, data }) => (type === "RecipientAdded" || type === "ConsentRecorded") && data.basis !== undefined,
  );
  return (basis === "dm_first" ? wrote : undefined) ?? imported;
}

/**
 * Returns the basis for messages to a contact. A contact who wrote to us first keeps that basis, even if an import
 * names another one.
 */
export function effectiveBasis({ inbound, basis }: Pick<Contact, "inbound" | "basis">): Basis {
  return inbound ? "dm_first" : basis;
}
