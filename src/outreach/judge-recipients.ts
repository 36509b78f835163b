import type { NotReachedReason, Recipient, RecipientSource, SkipReason } from "../../events/outreach.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { toRecipient, type Contact } from "../../projections/contact.ts";
import type { QuotaMoment } from "../../projections/quota.ts";
import { consentForCampaign } from "./campaigns/rules.ts";
import { judgeKnown, messageRecipient, sourceFor, type OutreachRules, type OutreachState } from "./decide.ts";
import { isSelected, leftOfLimit, remaining, type RunSelection } from "./run-limits.ts";
import { createTimeSlices } from "../platform/time-slices.ts";
import { renderAll, chooseVariant, type Rendered } from "../template/template.ts";

/** The verdicts on all imported recipients before a run asks the network, counted by variant and skip reason. */
export type Survey = Awaited<ReturnType<typeof survey>>;

/**
 * A recipient, and the message rendered for them: the recipient that the caller asked for, or the first open one
 * without missing fields.
 */
interface Sample {
  readonly recipient: Recipient;
  readonly rendered: Rendered;
}

interface Skipped {
  count: number;
  /** First recipients who are skipped for this reason. */
  readonly recipients: Recipient[];
}

/**
 * Judges all imported recipients as a run does before it asks the network, in slices of some milliseconds. `limit`: the
 * most recipients named for each reason; `selection`: the recipients that a run is for.
 */
export async function survey(
  state: OutreachState,
  rules: OutreachRules,
  { recipient, limit, selection }: { recipient: Contact | undefined; limit: number; selection: RunSelection },
) {
  const samples = new Map(recipient === undefined ? [] : renderSamples(rules, recipient));
  const counts = new Map<string | undefined, number>();
  const skips = new Map<SkipReason, Skipped>();
  let failed = 0;
  const slices = createTimeSlices();
  for (const contact of state.contacts.people.values()) {
    if (slices.isOver()) await slices.next();
    if (!contact.listed) continue;
    const variant = selection.variant === undefined ? undefined : ownVariant(rules, contact);
    if (!isSelected(selection, { variant, basis: consentForCampaign(contact, rules).basis, source: "list" })) continue;
    const verdict = judgeKnown(state, rules, toRecipient(contact));
    if (verdict.verdict !== "ask" && verdict.reason === "not_in_audience")
      note(skips, verdict.reason, toRecipient(contact), limit);
    else if (verdict.verdict === "pass") failed++;
    else if (verdict.verdict === "skip") note(skips, verdict.reason, toRecipient(contact), limit);
    else {
      const own = variant ?? ownVariant(rules, contact);
      counts.set(own, (counts.get(own) ?? 0) + 1);
      const isSampled = recipient !== undefined || samples.size === rules.template.variants.length;
      if (!isSampled) addSamples(samples, rules, contact);
    }
  }
  return {
    template: rules.template.id,
    template_name: rules.template.name ?? null,
    /** Variants of the message in the template's order. `recipients`: how many open recipients get the variant. */
    variants: rules.template.variants.map(({ label }) => {
      return { variant: label, recipients: counts.get(label) ?? 0, sample: samples.get(label) };
    }),
    /**
     * Number of open recipients whose variant is unknown: the list has only their handle, and the id, which decides the
     * variant, is known to the network.
     */
    undecided: counts.get(undefined) ?? 0,
    skips,
    /** Recipients whose last message failed. They get another one only after an operator allows a retry. */
    failed,
    /**
     * Verdict on the one recipient that the caller asked for, and their variant if their id is known. Absent if the
     * caller asked for none.
     */
    requested: recipient && {
      verdict: judgeKnown(state, rules, toRecipient(recipient)),
      variant: ownVariant(rules, recipient),
    },
  };
}

interface Found {
  readonly recipient: Recipient;
  readonly contact: Contact | undefined;
  readonly source: RecipientSource | undefined;
}

/** True if a run is for the recipient: its limits do not leave them out. */
export function isForRun(wanted: RunSelection | null, rules: OutreachRules, found: Found): boolean {
  const { recipient, contact, source } = found;
  const { template } = rules;
  const id = recipient.id ?? contact?.id;
  return isSelected(wanted, {
    // Costs a hash for each recipient of a list, which most runs do not need.
    variant: wanted?.variant === undefined || id === undefined ? undefined : chooseVariant(template, id).label,
    basis: consentForCampaign(contact, rules).basis,
    source: sourceFor(source, contact),
  });
}

/** A run's act on a requested recipient, as the log tells it before the network is asked. */
export interface Expected {
  readonly recipient: Recipient;
  readonly expected: "message" | "no_message";
  readonly reason?: SkipReason | NotReachedReason;
  readonly detail?: string;
}

/** Judges requested recipients for the run in progress or, if there is none, for a run with this selection. */
export function judgeRequested(
  state: OutreachState,
  rules: OutreachRules,
  {
    now,
    recipients,
    selection = {},
  }: {
    readonly now: QuotaMoment;
    readonly recipients: readonly Recipient[];
    readonly selection?: RunSelection | undefined;
  },
): readonly Expected[] {
  const { current } = state.run;
  const ofDay = remaining(state, rules, now);
  const ofRun = current === null ? (selection.limit ?? Infinity) : leftOfLimit(current);
  let left = Math.min(ofDay, ofRun) - (current?.requested.length ?? 0);
  return recipients.map((recipient): Expected => {
    const contact = findPerson(state.contacts, recipient);
    const found = { recipient, contact, source: undefined };
    if (!isForRun(current ?? selection, rules, found)) return { recipient, expected: "no_message", reason: "left_out" };
    const judged = judgeKnown(state, rules, recipient, undefined, contact);
    if (judged.verdict === "ask" && left-- > 0) return { recipient, expected: "message" };
    if (judged.verdict === "ask") {
      const reason = ofDay <= ofRun ? "daily_limit_reached" : "limit_reached";
      return { recipient, expected: "no_message", reason };
    }
    const { verdict: _verdict, ...why } = judged;
    return { recipient, expected: "no_message", ...("found" in why ? { reason: why.reason } : why) };
  });
}

/**
 * Returns the variant of the message that a recipient gets, by their id; undefined without an id. If the template has
 * one variant, it goes to all.
 */
function ownVariant({ template }: OutreachRules, { id }: Contact): string | undefined {
  if (template.variants.length === 1) return template.variants[0]!.label;
  return id === undefined ? undefined : chooseVariant(template, id).label;
}

function note(skips: Map<SkipReason, Skipped>, reason: SkipReason, who: Recipient, limit: number): void {
  const skipped = skips.getOrInsertComputed(reason, () => ({ count: 0, recipients: [] }));
  skipped.count++;
  if (skipped.recipients.length < limit) skipped.recipients.push(who);
}

function addSamples(samples: Map<string, Sample>, rules: OutreachRules, contact: Contact): void {
  for (const [variant, sample] of renderSamples(rules, contact)) {
    if (sample.rendered.ok && !samples.has(variant)) samples.set(variant, sample);
  }
}

function renderSamples({ template }: OutreachRules, contact: Contact): [string, Sample][] {
  const recipient = toRecipient(contact);
  const texts = renderAll(template, messageRecipient(contact, { ...STAND_INS, ...recipient }));
  return texts.map(({ variant, rendered }) => [variant, { recipient, rendered }]);
}

/** Placeholders for the values of a message that only the network knows until it is sent. */
export const STAND_INS = { name: "[name]", username: "[username]" } as const;
