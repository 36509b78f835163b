import type { NotReachedReason, Recipient, RecipientSource, SkipReason } from "../../events/outreach.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { toRecipient, type Contact } from "../../projections/contact-state.ts";
import type { QuotaMoment } from "../../projections/quota.ts";
import { consentForCampaign } from "../../projections/contact-outreach-by-campaign.ts";
import { judgeKnown, messageRecipient, sourceFor, type OutreachRules, type OutreachState } from "./decide.ts";
import { isSelected, leftOfLimit, remaining, type RunSelection } from "./quota-and-reasons-to-end-run.ts";
import { createTimeSlices } from "../platform/work-in-time-slices.ts";
import { renderAll, chooseVariant, type Rendered } from "../template/template.ts";

/** The result of judging all imported recipients without asking the network, counted by variant and skip reason. */
export type Survey = Awaited<ReturnType<typeof survey>>;

/**
 * A message rendered for one recipient: the recipient that the caller named, or else the first recipient who may get a
 * message now and has all fields that the template needs.
 */
interface Sample {
  readonly recipient: Recipient;
  readonly rendered: Rendered;
}

interface Skipped {
  count: number;
  /** The first recipients who are skipped for this reason, up to the caller's limit. */
  readonly recipients: Recipient[];
}

/**
 * Judges all imported recipients as a run does before it asks the network, in slices of some milliseconds. `limit`:
 * maximum number of recipients named for each reason; `selection`: the limits of the run.
 */
export async function survey(
  state: OutreachState,
  rules: OutreachRules,
  { recipient, limit, selection }: { recipient: Contact | undefined; limit: number; selection: RunSelection },
) {
  const samples = new Map(recipient === undefined ? [] : renderSamples(rules, recipient));
  const counts = new Map<string | undefined, number>();
  const skips = new Map<SkipReason, Skipped>();
  let [failed, held] = [0, 0];
  const slices = createTimeSlices();
  for (const contact of state.contacts.people.values()) {
    if (slices.isOver()) await slices.next();
    if (!contact.listed) continue;
    const variant = selection.variant === undefined ? undefined : ownVariant(rules, contact);
    if (!isSelected(selection, { variant, basis: consentForCampaign(contact, rules).basis, source: "list" })) continue;
    const verdict = judgeKnown(state, rules, toRecipient(contact));
    if (verdict.verdict !== "ask" && verdict.reason === "not_in_audience")
      note(skips, verdict.reason, toRecipient(contact), limit);
    else if (verdict.verdict === "pass" && verdict.reason === "held") held++;
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
     * Number of open recipients whose variant is unknown: it follows from their network id, and the list has only their
     * handle.
     */
    undecided: counts.get(undefined) ?? 0,
    skips,
    /** Number of recipients whose message failed: they get no other one until an operator allows a retry. */
    failed,
    /** Number of recipients whose reply may be an opt-out: they get no message until an operator decides. */
    held,
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
    // The variant is computed only if the run is limited to one, because that takes a hash for each recipient.
    variant: wanted?.variant === undefined || id === undefined ? undefined : chooseVariant(template, id).label,
    basis: consentForCampaign(contact, rules).basis,
    source: sourceFor(source, contact),
  });
}

/** The outcome that a requested recipient will probably have, judged by the log alone, before the network is asked. */
export interface Expected {
  readonly recipient: Recipient;
  readonly expected: "message" | "no_message";
  readonly reason?: SkipReason | NotReachedReason;
  readonly detail?: string;
}

/**
 * Predicts the outcome for requested recipients: in the run in progress or, if there is none, in a run with this
 * selection.
 */
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
 * Returns the variant that the recipient's network id gives; undefined without an id. A template with one variant needs
 * no id.
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

/** Placeholders in a preview for the recipient's name and handle, which the network provides when a message is sent. */
export const STAND_INS = { name: "[name]", username: "[username]" } as const;
