import type { Recipient } from "../../events/outreach.ts";
import { personalLinkOwner } from "../../events/clicks-links-conversions.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { findLink } from "../../projections/links.ts";
import { isFetchOfOwn } from "../../projections/message-outcomes-and-reactions.ts";
import { linkKey } from "../../projections/link-keys-and-text-links.ts";
import { DAY_MS, msOf, toDay } from "../../projections/parse-log-times.ts";
import { isSuspectedDay } from "../../projections/link-clicks-by-day.ts";
import { eventsAt, inOrder, STREAMS } from "../log/event-log.ts";
import type { Reachlog } from "../privacy/log-context-types.ts";

/** Rules by which a conversion is attributed to a click: to the first or the last one, and within how many days. */
interface AttributionRules {
  readonly model: "first" | "last";
  readonly days: number;
}

/**
 * Maximum difference between the clocks of a caller and of the log, in ms. The log may date a click later than the
 * caller dates the sale that followed it.
 */
export const CLOCKS_DIFFER_MS = 5 * 60_000;

/**
 * Returns the click that a conversion is attributed to; undefined without one. `clicks`: those that may have led to it,
 * in the order of the log. `isCounted` is false for clicks of bots, and for those suspected to be the network's.
 */
export function attribute<Click extends { readonly at: number; readonly isCounted: boolean }>(
  clicks: readonly Click[],
  occurredAt: number,
  { model, days }: AttributionRules,
): Click | undefined {
  const within = clicks.filter(
    ({ at, isCounted }) => isCounted && at <= occurredAt + CLOCKS_DIFFER_MS && at >= occurredAt - days * DAY_MS,
  );
  return model === "first" ? within[0] : within.at(-1);
}

/** True if clicks by this personal link are recorded as those of its recipient, who grants tracking. */
export function isTracked({ projector, keyring }: Reachlog, code: string): boolean {
  const recipient = findLink(projector.state("links"), code)?.recipient;
  if (recipient === undefined || keyring.isForgotten(personalLinkOwner(code))) return false;
  return findContact(projector.state("contacts"), recipient)?.tracking.status === "granted";
}

/**
 * Maximum number of clicks of a link, or of events of a recipient, that are searched for a conversion's click, the
 * newest first.
 */
const CANDIDATES_MAX = 1_000;

/** Reads the newest clicks of a link, in the order of the log. */
export async function readLinkClicks(
  context: Reachlog,
  { domain, short_code }: { readonly domain: string; readonly short_code: string },
) {
  const stream = STREAMS.link(domain, short_code);
  const query = { stream, types: ["LinkClicked"], backwards: true, limit: CANDIDATES_MAX };
  const newest = await Array.fromAsync(context.eventLog.store.read(query), ({ position }) => position);
  return readClicksAt(context, newest);
}

/** Reads the clicks of a recipient who grants tracking, in the order of the log; none for all others. */
export async function readRecipientClicks(context: Reachlog, who: Recipient) {
  const { eventLog, projector } = context;
  const contact = findContact(projector.state("contacts"), who);
  if (contact?.tracking.status !== "granted") return [];
  const events = await Array.fromAsync(eventsAt(eventLog.store, contact.positions.slice(-CANDIDATES_MAX)));
  const clicks = events.flatMap(({ type, position }) => (type === "PersonalLinkClicked" ? [position - 1] : []));
  return readClicksAt(context, clicks);
}

/**
 * Reads the clicks at these positions, and the event after each: for a click on a recipient's own link, that event
 * names the link's code.
 */
export async function readClicksAt(context: Reachlog, positions: readonly number[]) {
  const { eventLog, projector } = context;
  const { position: end } = await eventLog.store.head();
  const wanted = new Set(positions);
  const around = inOrder(positions.flatMap((position) => [position, position + 1])).filter((one) => one <= end);
  const events = await Array.fromAsync(eventsAt(eventLog.store, around));
  return events.flatMap((event, index) => {
    if (event.type !== "LinkClicked" || !wanted.has(event.position)) return [];
    const { domain, short_code, bot, anonymous, untracked } = event.data;
    const at = msOf(event.time);
    const next = events[index + 1];
    const own = next?.type === "PersonalLinkClicked" ? next.data.code : undefined;
    const code = own !== undefined && isTracked(context, own) ? own : undefined;
    const isSuspected =
      code === undefined
        ? isSuspectedDay(projector.state("visits"), toDay(at), linkKey(domain, short_code))
        : isFetchOfOwn(projector.state("results"), code, at);
    return [
      {
        position: event.position,
        at,
        domain,
        short_code,
        isCounted: !bot && !isSuspected,
        /** True if the click's visitor, or the recipient whose link it came by, does not want to be tracked. */
        isAnonymous: anonymous === true || untracked === true || (own !== undefined && code === undefined),
        /** Code of the recipient's own link, if the click came by one and the recipient grants tracking. */
        code,
      },
    ];
  });
}
