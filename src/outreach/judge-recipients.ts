import type { Recipient, SkipReason } from "../../events/outreach.ts";
import { toRecipient, type Contact } from "../../projections/contacts.ts";
import { judgeKnown, messageRecipient, type OutreachRules, type OutreachState } from "./decide.ts";
import { isSelected, type RunSelection } from "./run-limits.ts";
import { createTimeSlices } from "../platform/time-slices.ts";
import { renderAll, chooseVariant, type Rendered } from "../template/template.ts";

/** The judgement of the imported recipients before a run asks the network. */
export type Survey = Awaited<ReturnType<typeof survey>>;

/** The text for the requested recipient, or else for the first open one that it renders for. */
interface Sample {
  readonly recipient: Recipient;
  readonly rendered: Rendered;
}

interface Skipped {
  count: number;
  /** The first of them. */
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
    if (!isSelected(selection, { variant, basis: contact.basis, source: "list" })) continue;
    const verdict = judgeKnown(state, rules, toRecipient(contact));
    if (verdict.verdict === "pass") failed++;
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
    /** In the template's order. `recipients`: how many open recipients get it. */
    variants: rules.template.variants.map(({ label }) => {
      return { variant: label, recipients: counts.get(label) ?? 0, sample: samples.get(label) };
    }),
    /** Open recipients who are known by handle only. Their id, which the network knows, decides their variant. */
    undecided: counts.get(undefined) ?? 0,
    skips,
    /** Recipients whose message failed. Only an operator can allow a retry. */
    failed,
    /** Present only if one recipient is requested; with their variant if their id is known. */
    requested: recipient && {
      verdict: judgeKnown(state, rules, toRecipient(recipient)),
      variant: ownVariant(rules, recipient),
    },
  };
}

/**
 * Returns the variant of a recipient, which their id decides; undefined without an id. A single variant goes to all
 * recipients.
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

/** Placeholders for values that the network tells only when a message is sent. */
export const STAND_INS = { name: "[name]", username: "[username]" } as const;
