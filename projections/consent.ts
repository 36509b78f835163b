import type { DataOf } from "../events/event-types-and-codec.ts";
import type { Basis, Tracking } from "../events/outreach.ts";
import { DAY_MS, msOf } from "./parse-log-times.ts";

/**
 * Evidence of a recipient's consent or objection: when (ISO 8601), where and to which wording they agreed or objected.
 */
export interface Evidence {
  readonly at?: string;
  readonly source?: string;
  readonly text?: string;
}

/** Evidence of consent to messages, and the basis on which the recipient is written to. */
export interface ConsentEvidence extends Evidence {
  readonly basis: Basis;
}

/** A recipient's consent to have their own clicks recorded, and the evidence for it. */
export interface TrackingConsent extends Evidence {
  readonly status: Tracking;
}

/** Consents, and withdrawals (basis `none`), by the campaign or topic that each names. */
type Named = Readonly<Record<string, ConsentEvidence>>;

/** The known consent of a recipient. */
export interface Consent {
  basis: Basis;
  /**
   * Evidence for the present value of `basis`, from the newest record that contained evidence; null if no record
   * contained any.
   */
  consent: ConsentEvidence | null;
  tracking: TrackingConsent;
  /** True if the recipient wrote to us before we wrote to them. No import revokes the consent that this gives. */
  inbound: boolean;
  /**
   * Time at which the earliest message was received that the recipient wrote before we wrote to them, ISO 8601. Such a
   * message is evidence in itself.
   */
  wrote_at?: string;
  /** Consents and withdrawals that hold only for the campaign or topic that they name; absent if there are none. */
  consents_for?: Named;
}

/** The consent of a recipient before the log says anything about it. */
export const NO_CONSENT: Consent = { basis: "none", consent: null, tracking: { status: "unknown" }, inbound: false };

/**
 * True if the consent has a date and a source. A recipient who wrote first needs none, because the log itself records the
 * message.
 */
export function hasEvidence({ basis, consent, inbound }: Consent): boolean {
  return inbound || (basis !== "none" && consent?.at !== undefined && consent.source !== undefined);
}

const NOTHING: readonly never[] = [];

/** Returns the parts that a consent lacks to be proven: its basis, date or source. */
export function findMissingEvidence(known: Consent): readonly ("basis" | "consent_at" | "consent_source")[] {
  if (hasEvidence(known)) return NOTHING;
  const { basis, consent } = known;
  const evidence = basis === "none" ? null : consent;
  return [
    ...(basis === "none" ? (["basis"] as const) : []),
    ...(evidence?.at === undefined ? (["consent_at"] as const) : []),
    ...(evidence?.source === undefined ? (["consent_source"] as const) : []),
  ];
}

/**
 * Returns the recipient's consent for a campaign: one that names the campaign or its topic, else the general one. A
 * withdrawal that names either outweighs the others, until a new consent of the same name replaces it.
 */
export function consentFor<One extends Consent>(consent: One, names: readonly (string | undefined)[]): One {
  const { consents_for: named } = consent;
  if (named === undefined) return consent;
  const found = names.flatMap((name) => {
    const key = name === undefined ? undefined : findSpelling(Object.keys(named), name);
    return key === undefined ? [] : [named[key]!];
  });
  const withdrawn = found.find(({ basis }) => basis === "none");
  if (withdrawn !== undefined) return { ...consent, basis: "none", consent: withdrawn, inbound: false };
  const [own] = found;
  return own === undefined ? consent : { ...consent, basis: consent.inbound ? "dm_first" : own.basis, consent: own };
}

/** True if two names of campaigns or topics are the same for people: they differ by case or by the form of accents. */
export function isSameTopic(one: string, other: string): boolean {
  return one === other || foldCase(one) === foldCase(other);
}

/** Returns the spelling of a campaign or topic that is among these; undefined if none is. */
export function findSpelling(names: readonly string[], wanted: string): string | undefined {
  return names.find((name) => name === wanted) ?? names.find((name) => isSameTopic(name, wanted));
}

function foldCase(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Consent that one row of an import, or one ConsentRecorded event, states. */
export type ConsentRecord = Partial<Omit<DataOf<"ConsentRecorded">, "recipient" | "message_id">>;

/**
 * Returns the consent of a contact after a record. Members that the record omits stay. New evidence replaces the old as
 * a whole; a record without evidence keeps the old evidence if its basis or status is the same.
 */
export function consentAfter(
  { basis, consent, tracking, inbound, consents_for }: Consent,
  record: ConsentRecord,
): Omit<Consent, "inbound"> {
  const named = namedAfter(consents_for, record);
  const general = record.consent_for === undefined ? record.basis : undefined;
  return {
    basis: inbound ? "dm_first" : (general ?? basis),
    consent: general === undefined ? consent : evidenceAfter(consent, general, record),
    tracking: record.tracking === undefined ? tracking : trackingAfter(tracking, record.tracking, record),
    ...(named === undefined ? {} : { consents_for: named }),
  };
}

/** Returns the consent of a contact after several records. */
export function consentAfterAll(before: Consent, records: readonly ConsentRecord[]): Consent {
  return records.reduce((consent, record) => ({ ...consentAfter(consent, record), inbound: before.inbound }), before);
}

/**
 * Returns the consents and withdrawals that name a campaign or topic, after one more record; the first spelling of a
 * name stays. A general withdrawal removes all these consents; the withdrawals stay.
 */
function namedAfter(before: Named | undefined, record: ConsentRecord): Named | undefined {
  const { basis, consent_for: name } = record;
  if (basis === undefined) return before;
  if (name === undefined) return basis === "none" ? withdrawalsIn(before) : before;
  const key = findSpelling(Object.keys(before ?? {}), name);
  const own = key === undefined ? null : before![key]!;
  return { ...before, [key ?? name]: evidenceAfter(own, basis, record) ?? { basis } };
}

function withdrawalsIn(named: Named | undefined): Named | undefined {
  const withdrawals = Object.entries(named ?? {}).filter(([, { basis }]) => basis === "none");
  return withdrawals.length === 0 ? undefined : Object.fromEntries(withdrawals);
}

/** True if a recipient lost a consent: the general one, or the one for the campaign or topic that the record names. */
export function isConsentLost(before: Consent, after: Consent, { consent_for: name }: ConsentRecord): boolean {
  return consentFor(before, [name]).basis !== "none" && consentFor(after, [name]).basis === "none";
}

/**
 * Returns an import row, without its consent to tracking if the contact has denied tracking: a list is often older than
 * the denial. Only a grant with a later date revokes a denial, or a separate record of consent.
 */
export function withoutStaleTracking({ tracking: { status, at } }: Consent, row: ConsentRecord): ConsentRecord {
  if (status !== "denied" || row.tracking === undefined || row.tracking === "denied") return row;
  const { tracking, tracking_at, ...rest } = row;
  if (tracking !== "granted" || at === undefined || tracking_at === undefined) return rest;
  const isLater = timeOf({ status: tracking, at: tracking_at }) > timeOf({ status, at });
  return isLater ? row : rest;
}

const DAY = /^\d{4}-\d\d-\d\d$/;

/**
 * Returns the time of evidence in ms since 1970; -Infinity if it has none. A date without a time means the beginning of
 * the day, or its end for a denial, because a grant of the same day must not revoke the denial.
 */
function timeOf({ at, status }: Evidence & { readonly status?: Tracking }): number {
  if (at === undefined) return -Infinity;
  if (!DAY.test(at)) return msOf(at);
  return msOf(`${at}T00:00:00.000Z`) + (status === "denied" ? DAY_MS - 1 : 0);
}

function evidenceAfter(
  before: ConsentEvidence | null,
  basis: Basis,
  { consent_at: at, consent_source: source, consent_text: text }: ConsentRecord,
): ConsentEvidence | null {
  const evidence = evidenceOf({ at, source, text });
  if (evidence === undefined) return before?.basis === basis ? before : null;
  return { basis, ...evidence };
}

function trackingAfter(
  before: TrackingConsent,
  status: Tracking,
  { tracking_at: at, tracking_source: source, tracking_text: text }: ConsentRecord,
): TrackingConsent {
  const evidence = evidenceOf({ at, source, text });
  return evidence === undefined && before.status === status ? before : { status, ...evidence };
}

/**
 * Builds the evidence of a consent or an objection: when, where and to which wording. Undefined if all parts are
 * absent.
 */
function evidenceOf({ at, source, text }: { [Part in keyof Evidence]: string | undefined }): Evidence | undefined {
  if (at === undefined && source === undefined && text === undefined) return undefined;
  return {
    ...(at === undefined ? {} : { at }),
    ...(source === undefined ? {} : { source }),
    ...(text === undefined ? {} : { text }),
  };
}

const CONSENT: readonly Basis[] = ["none", "opt_in", "dm_first"];

/**
 * Statuses of consent to tracking, in ascending precedence. If two entries turn out to be one recipient, the later
 * status in this list counts.
 */
const TRACKING: readonly Tracking[] = ["unknown", "granted", "denied"];

/** Merges the consents of two entries that are one recipient, and keeps the newer evidence. */
export function unitedConsent(one: Consent, other: Consent): Partial<Consent> {
  const basis = laterOf(CONSENT, one.basis, other.basis);
  const status = laterOf(TRACKING, one.tracking.status, other.tracking.status);
  const consents = [one.consent, other.consent].filter((evidence) => evidence !== null);
  const consent = newest(consents.filter((evidence) => basis === "dm_first" || evidence.basis === basis));
  const tracking = newest([one.tracking, other.tracking].filter((evidence) => evidence.status === status));
  return {
    basis,
    consent: consent ?? null,
    ...(tracking === undefined ? {} : { tracking }),
    ...(other.wrote_at === undefined ? {} : { wrote_at: earlier(one.wrote_at, other.wrote_at) }),
    ...(other.consents_for === undefined ? {} : { consents_for: unitedNamed(one, other) }),
  };
}

/**
 * Merges the consents that name a campaign or topic, of two entries that are one recipient. A withdrawal in either
 * entry wins.
 */
function unitedNamed({ consents_for: own = {} }: Consent, { consents_for = {} }: Consent): Named {
  const spelt = Object.entries(consents_for).map(([name, one]) => [findSpelling(Object.keys(own), name) ?? name, one]);
  const others = Object.fromEntries(spelt) as Named;
  return { ...others, ...own, ...withdrawalsIn(others) };
}

/** Returns the earlier of two times, ISO 8601. */
export function earlier(one: string | undefined, other: string): string {
  return one !== undefined && msOf(one) < msOf(other) ? one : other;
}

function laterOf<Value>(order: readonly Value[], one: Value, other: Value): Value {
  return order.indexOf(other) > order.indexOf(one) ? other : one;
}

function newest<Found extends Evidence>(found: readonly Found[]): Found | undefined {
  return found.reduce<Found | undefined>(
    (best, next) => (best !== undefined && timeOf(next) <= timeOf(best) ? best : next),
    undefined,
  );
}
