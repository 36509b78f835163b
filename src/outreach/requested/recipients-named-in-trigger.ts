import type { NotReachedReason, Recipient } from "../../../events/outreach.ts";
import { findContact } from "../../../projections/contact-identity.ts";
import { toRecipient, type Contacts } from "../../../projections/contact-state.ts";
import { isRequested, type RunState } from "../../../projections/current-run.ts";
import type { AppendDecision } from "../../log/decide-and-append.ts";
import type { NewEvent } from "../../log/event-log.ts";

/** Maximum number of recipients in one request for a run. */
export const RECIPIENTS_MAX = 100;

/**
 * Maximum number of recipients that wait for their turn in one run. When it ends, one append records all that it did
 * not reach.
 */
const REQUESTED_MAX = 5_000;

/**
 * Returns the recipients that a caller names, each once, with the id and handle that the log holds. A former handle
 * stays as it is: only the network knows whose it is now.
 */
export function toRequested(contacts: Contacts, named: readonly Recipient[]): readonly Recipient[] {
  const requested = named.map((recipient) => {
    const contact = findContact(contacts, recipient);
    const isNow = recipient.id !== undefined || contact?.username?.toLowerCase() === recipient.username?.toLowerCase();
    return contact === undefined || !isNow ? recipient : toRecipient(contact);
  });
  return [...new Map(requested.map((recipient) => [toRequestKey(recipient), recipient])).values()];
}

/** Returns a text that identifies a requested recipient: the id or, without one, `@` and the handle in lower case. */
export function toRequestKey({ id, username = "" }: Recipient): string {
  return id ?? `@${username.toLowerCase()}`;
}

export function toRequests(run_id: string, recipients: readonly Recipient[]): NewEvent[] {
  return recipients.map((recipient) => ({ type: "RecipientRequested", data: { run_id, recipient } }));
}

/**
 * Decides that recipients join the run in progress. Refused if there is none, if it is a dry run or is being stopped,
 * or if too many already wait.
 */
export function decideJoin(current: RunState | null, recipients: readonly Recipient[]): AppendDecision<"not_joined"> {
  const isOpen = current !== null && !current.dry_run && current.stop_requested_at === null;
  if (!isOpen || current.requested.length + recipients.length > REQUESTED_MAX) return { refusal: "not_joined" };
  return { events: toRequests(current.run_id, recipients) };
}

interface Refused {
  readonly recipient: Recipient;
  readonly verdict: { readonly verdict: "skip" } | { readonly verdict: "pass"; readonly reason: NotReachedReason };
}

/**
 * Makes an event for each refused recipient that a caller requested, unless the run records that it skips the
 * recipient. Recipients that no caller requested need no event.
 */
export function toNotReached(current: RunState | null, run_id: string, refused: readonly Refused[]): NewEvent[] {
  return refused.flatMap(({ recipient, verdict }): NewEvent[] => {
    if (verdict.verdict === "skip" || !isRequested(current, recipient)) return [];
    return [{ type: "RecipientNotReached", data: { run_id, recipient, reason: verdict.reason } }];
  });
}

/**
 * Ends a run and, in the same append, gives each requested recipient without an outcome one. Refused if the run
 * completed although `hadTurn` is false for one of them: it must continue. `report`: event that requests the run's
 * report.
 */
export function decideEnd(
  current: RunState | null,
  end: Extract<NewEvent, { type: "RunFinished" | "DryRunFinished" | "RunAbandoned" }>,
  hadTurn: (recipient: Recipient) => boolean,
  report: readonly NewEvent[] = [],
): AppendDecision<"requested"> {
  const waiting = current?.requested ?? [];
  const reason = end.type === "RunAbandoned" ? "abandoned" : end.data.reason;
  if (reason === "completed" && !waiting.every(hadTurn)) return { refusal: "requested" };
  const verdict = { verdict: "pass", reason } as const;
  const left = waiting.map((recipient) => ({ recipient, verdict }));
  return { events: [...toNotReached(current, end.data.run_id, left), end, ...report] };
}
