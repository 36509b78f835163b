import type { DataOf } from "../../events/catalog.ts";
import type { Recipient, RunEnd, SkipReason } from "../../events/outreach.ts";
import { findContact } from "../../projections/contacts.ts";
import type { QuotaMoment } from "../../projections/quota.ts";
import { linksIn } from "../../projections/sent-links.ts";
import type { NewEvent } from "../log/event-log.ts";
import type { Decision } from "../log/handle.ts";
import type { SocialUser } from "../networks/network.ts";
import {
  isSkipRecorded,
  judgeUser,
  remaining,
  type OutreachRules,
  type OutreachState,
  type Refusal,
} from "./decide.ts";

/** One person's turn: who is asked about, and what the intent names. */
export interface TurnCommand {
  readonly user: SocialUser;
  readonly attempt_id: string;
  readonly run_id: string;
  /** Whose run it is; another account that is linked meanwhile gets none of it. */
  readonly accountId: string | undefined;
  readonly now: QuotaMoment;
}

/** `end`: why the run ends; undefined: only the turn does. */
export interface TurnRefused {
  readonly end: RunEnd | undefined;
}

/** The intent to write to the person, or their skip; nothing where the log has that already. */
export function decideTurn(
  state: OutreachState,
  rules: OutreachRules,
  { user, attempt_id, run_id, accountId, now }: TurnCommand,
): Decision<TurnRefused> {
  if (state.account.user?.id !== accountId) return { refusal: { end: "not_authorized" } };
  const recipient = { id: user.id, username: user.username };
  const verdict = judgeUser(state, rules, user);
  if (verdict.verdict !== "write") return { events: newSkips(state, run_id, [{ who: recipient, verdict }]) };
  if (remaining(state, rules, now) === 0) return { refusal: { end: "daily_limit_reached" } };
  const data = {
    attempt_id,
    run_id,
    recipient,
    text: verdict.text,
    links: [...linksIn(verdict.text)],
    variant: verdict.variant,
    template: rules.template.id,
    ...(accountId === undefined ? {} : { account_id: accountId }),
    day: now.day,
    timezone: now.timezone,
  };
  return { events: [{ type: "DirectMessageAttempted", data }] };
}

/** Somebody who gets no message, and why. */
export interface Refused {
  readonly who: Recipient;
  readonly verdict: Refusal;
}

/** What is recorded of somebody who gets no message. */
type Skip = Omit<DataOf<"DirectMessageSkipped">, "run_id">;

/** Each skip once: people are met by handle and again by id, and by several sources. */
export function skipsOf({ contacts }: OutreachState, refused: readonly Refused[]): Skip[] {
  const noted = new Map<unknown, SkipReason[]>();
  return refused.flatMap(({ who, verdict }): Skip[] => {
    if (verdict.verdict === "pass") return [];
    const { reason, detail, found } = verdict;
    const person = findContact(contacts, who) ?? who.id ?? who.username?.toLowerCase();
    const reasons = noted.get(person) ?? [];
    if (reasons.includes(reason)) return [];
    noted.set(person, [...reasons, reason]);
    const more = { ...(detail === undefined ? {} : { detail }), ...(found === undefined ? {} : { found }) };
    return [{ recipient: who, reason, ...more }];
  });
}

/** Each skip that the log does not hold yet. What was found closes the person, whatever was recorded of them before. */
export function newSkips(state: OutreachState, run_id: string, refused: readonly Refused[]): NewEvent[] {
  return skipsOf(state, refused)
    .filter(({ recipient, reason, found }) => found !== undefined || !isSkipRecorded(state, recipient, reason))
    .map((skip) => ({ type: "DirectMessageSkipped", data: { run_id, ...skip } }));
}
