import type { DataOf } from "../events/catalog.ts";
import type { Basis, Tracking } from "../events/outreach.ts";
import { DAY_MS, msOf } from "./time.ts";

/** When (ISO 8601), where and to which wording a recipient agreed or objected. */
export interface Evidence {
  readonly at?: string;
  readonly source?: string;
  readonly text?: string;
}

/** Evidence for the basis on which the recipient is written to. */
export interface ConsentEvidence extends Evidence {
  readonly basis: Basis;
}

/** Whether their own clicks may be recorded, and the evidence for that. */
export interface TrackingConsent extends Evidence {
  readonly status: Tracking;
}

/** What is known of a recipient's consent. */
export interface Consent {
  basis: Basis;
  /** Of the newest record that gave some, for the present basis; null: there is none. */
  consent: ConsentEvidence | null;
  tracking: TrackingConsent;
  /** Wrote to us before we did to them: consent that no import takes away. */
  inbound: boolean;
  /** When the earliest of these messages was received, ISO 8601: evidence of its own. */
  wrote_at?: string;
}

/** The consent of a recipient before the log says anything of it. */
export const NO_CONSENT: Consent = { basis: "none", consent: null, tracking: { status: "unknown" }, inbound: false };

/** What a consent lacks to be proved. For a recipient who wrote first, the log itself holds the message. */
export function findMissingEvidence({
  basis,
  consent,
  inbound,
}: Pick<Consent, "basis" | "consent" | "inbound">): readonly ("basis" | "consent_at" | "consent_source")[] {
  if (inbound) return [];
  const evidence = basis === "none" ? null : consent;
  return [
    ...(basis === "none" ? (["basis"] as const) : []),
    ...(evidence?.at === undefined ? (["consent_at"] as const) : []),
    ...(evidence?.source === undefined ? (["consent_source"] as const) : []),
  ];
}

/** What a row of an import, or a record of consent, says of it. */
export type ConsentRecord = Partial<Omit<DataOf<"ConsentRecorded">, "recipient" | "message_id">>;

/**
 * The consent of a contact once this is recorded. What the record does not name stays. Evidence is replaced whole, since
 * parts of two records prove nothing together; a record without evidence keeps that of the same basis or status only.
 */
export function consentAfter(
  { basis, consent, tracking, inbound }: Consent,
  record: ConsentRecord,
): Pick<Consent, "basis" | "consent" | "tracking"> {
  return {
    basis: inbound ? "dm_first" : (record.basis ?? basis),
    consent: record.basis === undefined ? consent : evidenceAfter(consent, record.basis, record),
    tracking: record.tracking === undefined ? tracking : trackingAfter(tracking, record.tracking, record),
  };
}

/**
 * What a row of an import says, without what it says of tracking where that was denied: a list is often older than the
 * denial. Only a grant with a later date takes it back, or a record of its own.
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
 * When evidence was given, in ms since 1970; without a time before all that has one. A day alone counts from its
 * beginning, a denial's to its end: no grant of the same day takes it back.
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

/** Undefined: there is none. */
function evidenceOf({ at, source, text }: { [Part in keyof Evidence]: string | undefined }): Evidence | undefined {
  if (at === undefined && source === undefined && text === undefined) return undefined;
  return {
    ...(at === undefined ? {} : { at }),
    ...(source === undefined ? {} : { source }),
    ...(text === undefined ? {} : { text }),
  };
}

const CONSENT: readonly Basis[] = ["none", "opt_in", "dm_first"];

/** An objection that is recorded for either entry holds for the recipient. */
const TRACKING: readonly Tracking[] = ["unknown", "granted", "denied"];

/** The newer evidence of what holds for the recipient. */
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
  };
}

/** Of two times, ISO 8601. */
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
