import type { DataOf, Folded } from "../../../events/catalog.ts";
import { ERASED } from "../../../events/encryption.ts";
import { linkKey } from "../../../projections/sent-links.ts";
import { msOf } from "../../../projections/time.ts";
import { countsOn, dayAt, type Comparison } from "./two-worlds.ts";

/**
 * A rule that recognises bots by their user agent; null if that is no longer known or was never recorded. Returns
 * undefined if the rule cannot tell.
 */
export type BotRule = (userAgent: string | null | undefined) => boolean | undefined;

/**
 * Counts clicks together with the event after each, which tells whose link it was. Takes every event, and undefined at
 * the end of the log. If `isBot` is undefined, bots stay as recorded.
 */
export function createClickCounter(comparison: Comparison, isBot: BotRule | undefined) {
  let waiting: Folded<"LinkClicked"> | undefined;
  return (event: Folded | undefined): void => {
    const code = event?.type === "PersonalLinkClicked" ? event.data.code : undefined;
    if (waiting !== undefined) countClick(comparison, waiting, code, isBot);
    waiting = event?.type === "LinkClicked" ? event : undefined;
  };
}

function countClick(
  comparison: Comparison,
  { data, time }: Folded<"LinkClicked">,
  code: string | undefined,
  isBot: BotRule | undefined,
): void {
  const { was, would, lostLinks } = comparison;
  const ms = msOf(time);
  if (!data.bot) countsOn(comparison, dayAt(was, ms)).clicks.was++;
  const isBots = isBot === undefined ? data.bot : judgeClick(data, isBot);
  if (isBots === true) return;
  const isOwn = code !== undefined && would.state.contacts.links.has(code);
  const isLost = !isOwn && lostLinks.has(linkKey(data.domain, data.short_code));
  const counts = countsOn(comparison, dayAt(would, ms)).clicks;
  counts[isBots === undefined || isLost ? "unknown" : "would"]++;
}

function judgeClick({ user_agent, probe, anonymous }: DataOf<"LinkClicked">, isBot: BotRule): boolean | undefined {
  if (probe !== undefined) return true;
  return isBot(anonymous === true || user_agent === ERASED ? null : user_agent);
}
