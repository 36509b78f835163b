import type { DataOf, EventLike, EventType } from "../../events/event-types-and-codec.ts";
import { markOfErased } from "../../events/declare-personal-members.ts";
import type { ReadResource } from "../../events/authentication-keys-and-data-reads.ts";
import { hideCodes } from "../networks/hide-personal-codes.ts";
import { DELIVERY_WORDS } from "./sentences/clicks-and-deliveries.ts";
import { SHORT } from "./sentences/short-sentences.ts";
import { CAMPAIGN_WORDS } from "./sentences/campaign.ts";
import { OUTREACH_WORDS, RUN_WORDS } from "./sentences/outreach.ts";
import {
  because,
  formatRecipient,
  join,
  mention,
  other,
  plain,
  position,
  quote,
  say,
  formatSentence,
  moment,
  type Mention,
  type Sentence,
  type EventWords,
} from "./sentences/sentence-parts.ts";

const RESTORED_BY: Readonly<Record<DataOf<"LogRestored">["cause"], string>> = {
  restore: "after a restore from a backup",
  import: "after an import",
  copy: "in a new place",
  operator: "after a restore that an operator reported",
};

const RESOURCES: Readonly<Record<ReadResource, string>> = {
  overview: "the overview",
  run: "one run",
  recipients: "the list of recipients",
  recipient: "the record of one recipient",
  link: "one link",
  deliveries: "deliveries",
  results: "results",
  log: "events of the log",
  event: "one event",
  search: "a search",
  export: "an export of the log",
  suppressions: "the list of suppressions",
  stream: "the stream of events",
  evidence: "an evidence file",
  preview: "a preview of messages",
};

/** Functions that make a sentence of an event, one for each event type. A type without one does not compile. */
const WORDS: EventWords = {
  ...OUTREACH_WORDS,
  ...RUN_WORDS,
  ...CAMPAIGN_WORDS,
  ...DELIVERY_WORDS,
  // Events about the X account from which messages are sent.
  AccountAuthorized: ({ user, scopes, expires_at }) =>
    say`the account ${other(formatRecipient(user))} was linked with the scopes ${other(scopes.join(" "))}; its access token lasts until ${moment(expires_at)}`,
  TokenRefreshed: ({ user_id, expires_at }) =>
    say`the access token of account ${other(user_id)} was renewed and lasts until ${moment(expires_at)}`,
  TokenRefreshFailed: ({ user_id, reason, dead }) => {
    const end = dead ? "; the grant is dead: authorize the account again" : "";
    return say`the access token of account ${other(user_id)} could not be renewed: ${quote(reason)}${end}`;
  },
  AccountUnlinked: ({ user_id, revoked }) => {
    const tokens = revoked
      ? "the network revoked its tokens"
      : "the network did not confirm that its tokens are revoked";
    return say`the account ${other(user_id)} was unlinked; ${tokens}`;
  },
  AuthenticationsFailed: ({ address, addresses, failed, turned_away }) => {
    const who = address === undefined ? `${addresses} ${addresses === 1 ? "address" : "addresses"}` : other(address);
    const tried = failed + turned_away;
    const limited = turned_away === 0 ? "" : `; ${turned_away} of them got 429`;
    return say`${who} tried ${tried} wrong ${tried === 1 ? "token" : "tokens"}${limited}`;
  },
  TokenUsed: ({ name, token_id, day }: DataOf<"TokenUsed">) =>
    say`the token ${other(token_id)} of ${other(name)} was used for the first time on ${other(day)}`,
  KeyRotated: ({ from, to }) => say`the master key ${other(from)} was replaced by ${other(to)}`,
  PersonalDataRead: ({ resource, recipient, filters = [], records }) => {
    const about = recipient === undefined ? [] : say` about ${mention(recipient)}`;
    const by = filters.length === 0 ? [] : say`, filtered by ${join(filters.map(other), ", ")}`;
    const found = records === undefined ? "" : `, ${records} ${records === 1 ? "record" : "records"}`;
    return say`personal data${about} was read: ${RESOURCES[resource]}${by}${found}`;
  },
  // Events about the log itself, and about data that was erased from it.
  LogRestored: ({ cause, found_position }) => {
    return say`a service opened the log ${other(RESTORED_BY[cause])}: it ended at position ${position(found_position)}, and events since the copy was made may be missing`;
  },
  LogLossAccepted: ({ reason, expected_position, found_position }) => {
    const known = expected_position === undefined ? "" : `; its checkpoint had ${expected_position} events`;
    return say`an operator accepted a loss of the log, ${plain(reason)}: it ended at position ${position(found_position)}${known}`;
  },
  LogTimeCorrected: ({ at, day }) =>
    say`an operator declared the clock right, which showed ${moment(at)}: the day is ${other(day)}`,
  LogVerified: ({ position: to, checked, result, fault }) =>
    result === "whole"
      ? say`the log was verified up to position ${position(to)}: it is whole`
      : say`the log was verified up to position ${position(to)}: it is broken after ${checked} good events${because(fault)}`,
  BackupMade: ({ position: to }) => say`a backup was made up to position ${position(to)}`,
  EventsArchived: ({ position: to, events, segments }) =>
    say`${events} events were moved into ${segments} ${segments === 1 ? "segment" : "segments"}: the archive ends at position ${position(to)}`,
  BackupRehearsed: ({ position: to }) =>
    say`the backup up to position ${position(to)} was rehearsed: it can be restored`,
  PersonForgotten: ({ keys, scope, ground, requested_by }) => {
    const deleted = `${keys.length} ${keys.length === 1 ? "key was" : "keys were"} deleted`;
    const by = requested_by === undefined ? "" : ` as requested by the ${requested_by}`;
    const asked = ground === undefined ? by : `${by} (${plain(ground)})`;
    return scope === "tracking"
      ? say`the clicks of a recipient on their own links were erased, because they revoked tracking: ${deleted}`
      : say`a recipient was erased${asked}: ${deleted}, and no run contacts them again`;
  },
  PersonalDataExpired: ({ before, days }) =>
    say`the personal data of ${days} ${days === 1 ? "day" : "days"} before ${other(before)} expired and was erased`,
  PersonalKeysLost: ({ lost, replaced_by }) =>
    say`an operator accepted the loss of the key file ${other(lost)}: data encrypted with it reads as erased; ${other(replaced_by)} replaces it`,
  ProjectionRebuilt: ({ projection, version, position: to, differences }) => {
    const found =
      differences === undefined
        ? "there was no stored state to compare with"
        : differences === 0
          ? "no difference to the stored state"
          : `${differences} ${differences === 1 ? "difference" : "differences"} to the stored state, corrected`;
    return say`the projection ${other(projection)} (version ${version}) was rebuilt up to position ${position(to)}: ${found}`;
  },
  WhatIfAsked: ({ rules, position: to }) => {
    const named = rules.length === 0 ? "the same rules" : say`other rules (${other(rules.join(", "))})`;
    return say`a caller asked what ${named} would have done up to position ${position(to)}`;
  },
  RequestAnswered: ({ status }) => say`a request with an idempotency key was answered with status ${status}`,
};

/**
 * Returns the sentence that describes an event. Its mentions of recipients, links and runs can become links on a page.
 */
export function toSentence<T extends EventType>({ type, data }: EventLike<T>): Sentence {
  const sayIt = WORDS[type] as (data: unknown) => Sentence;
  return sayIt(hideCodes({ type, data }).data);
}

/** Returns the short sentence of an event for a list: who did what, without ids and most of the data. */
export function toShortSentence<T extends EventType>(event: EventLike<T> & Caused): Sentence {
  const sayIt = SHORT[event.type] as (data: unknown, who: Mention | string) => Sentence;
  const { caller } = event.meta;
  const who = caller === undefined ? "an operator" : caller === ANONYMOUS ? WITHOUT_TOKEN : other(caller);
  return sayIt(hideCodes({ type: event.type, data: event.data }).data, who);
}

interface Caused {
  readonly meta: { readonly caller?: string | undefined };
}

/**
 * Describes an event in a sentence, as text. It contains texts that other people wrote, so escape it before showing it.
 */
export function describeEvent<T extends EventType>(event: EventLike<T>): string {
  return formatSentence(toSentence(event));
}

/** Name that events record for a caller without a token. No token may have it. */
const ANONYMOUS = "anonymous";
const WITHOUT_TOKEN = "a caller without a token";

/** Returns the caller of a request as text: the name of a token, or that the caller had none. */
export function formatCaller(caller: string): string {
  return caller === ANONYMOUS ? WITHOUT_TOKEN : caller;
}

/** True if the recipient's data was erased since the event was recorded. */
export function isErased({ id }: { readonly id?: string | undefined }): boolean {
  return id !== undefined && markOfErased(id) !== undefined;
}

/**
 * Capitalises a sentence whose first part is plain text or names a run. A sentence that begins with another part, such
 * as a recipient's name or a link, stays as it is.
 */
export function capitalize(sentence: Sentence): Sentence {
  const first = sentence.findIndex((part) => part !== "");
  return sentence.map((part, at) => {
    if (at !== first) return part;
    if (typeof part === "string") return toCapital(part);
    return part.kind === "run" ? { ...part, text: toCapital(part.text) } : part;
  });
}

/** Returns a text with its first letter as a capital. */
export function toCapital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * Cuts a sentence to `most` characters, if necessary within a text that other people wrote, which is usually the
 * longest part.
 */
export function cutSentence(sentence: Sentence, most: number): { readonly shown: Sentence; readonly isCut: boolean } {
  const shown: (string | Mention)[] = [];
  let left = most;
  for (const part of sentence) {
    const text = typeof part === "string" ? part : part.text;
    if (text.length > left) {
      const beginning = cutText(text, left);
      shown.push(typeof part === "string" ? beginning : { ...part, text: beginning });
      return { shown, isCut: true };
    }
    shown.push(part);
    left -= text.length;
  }
  return { shown, isCut: false };
}

/** Cuts a text to `most` characters. Never cuts a character in half. */
function cutText(text: string, most: number): string {
  return text.slice(0, most).replace(/[\ud800-\udbff]$/, "");
}

/** Cuts a text to `most` characters. If it was longer, adds an ellipsis and `rest`. */
export function shorten(text: string, most: number, rest = ""): string {
  return text.length > most ? `${cutText(text, most)}…${rest}` : text;
}

/** Writes an event type with spaces: `LinkClicked` as `Link clicked`. */
export function spaced(type: string): string {
  return toCapital(type.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase());
}
