import type { DataOf, Folded } from "../../../events/event-types-and-codec.ts";
import { ERASED } from "../../../events/declare-personal-members.ts";
import { linkKey } from "../../../projections/link-keys-and-text-links.ts";
import { msOf } from "../../../projections/parse-log-times.ts";
import { countsOn, dayAt, type Comparison } from "./compare-rules.ts";

/**
 * Function that tells from a click's user agent if a bot made it; undefined if it cannot tell. The user agent is null
 * if it was erased or never recorded.
 */
export type BotRule = (userAgent: string | null | undefined) => boolean | undefined;

/**
 * Creates the function that counts clicks in the log and under the other rules. Pass it each event in order, then
 * undefined: the event after a click tells whose own link was clicked. Without `isBot`, the recorded judgement on bots
 * counts.
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
