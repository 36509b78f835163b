import type { Recipient, SkipReason } from "../../../events/outreach.ts";
import type { Contact } from "../../../projections/contacts.ts";
import { judgeKnown, type KnownVerdict, type OutreachRules, type OutreachState } from "../../outreach/decide.ts";
import { renderAll, chooseVariant, type MessageRecipient, type Rendered } from "../../template/template.ts";
import { toRecipient } from "../../outreach/sources/sources.ts";

/** What a run would find of the imported recipients before it asks the network anything. */
export interface Survey {
  readonly template: string;
  /** In their own order. */
  readonly variants: readonly VariantSample[];
  /** Still open, but known by handle only: the id, which the network knows, decides their variant. */
  readonly undecided: number;
  readonly skips: ReadonlyMap<SkipReason, Skipped>;
  /** Their message failed, and they are tried again only when that is allowed by hand. */
  readonly failed: number;
  /** Only when one person is asked for; their variant where their id is known. */
  readonly asked: { readonly verdict: KnownVerdict; readonly variant: string | undefined } | undefined;
}

export interface VariantSample {
  readonly variant: string;
  /** How many of those still open get it. */
  readonly recipients: number;
  /** The recipient asked for, or the first of those still open for which it renders; undefined when there is none. */
  readonly sample: Sample | undefined;
}

export interface Sample {
  readonly person: Recipient;
  readonly rendered: Rendered;
}

export interface Skipped {
  count: number;
  /** The first of them. */
  readonly people: Recipient[];
}

export interface SurveyOptions {
  /** The recipients of the texts. */
  readonly person?: Contact | undefined;
  /** People named for each reason, at most. */
  readonly limit: number;
}

/** Judges all imported recipients, as a run does before it asks the network. */
export function survey(state: OutreachState, rules: OutreachRules, { person, limit }: SurveyOptions): Survey {
  const samples = new Map(person === undefined ? [] : renderSamples(rules, person));
  const open: Contact[] = [];
  const skips = new Map<SkipReason, Skipped>();
  let failed = 0;
  for (const contact of state.contacts.people.values()) {
    if (!contact.listed) continue;
    const verdict = judgeKnown(state, rules, toRecipient(contact));
    if (verdict.verdict === "pass") failed++;
    else if (verdict.verdict === "skip") note(skips, verdict.reason, toRecipient(contact), limit);
    else open.push(contact);
  }
  if (person === undefined) for (const contact of open) addSamples(samples, rules, contact);
  const decided = Map.groupBy(open, (contact) => ownVariant(rules, contact));
  const variants = rules.template.variants.map(({ label }) => {
    return { variant: label, recipients: decided.get(label)?.length ?? 0, sample: samples.get(label) };
  });
  const asked =
    person === undefined
      ? undefined
      : { verdict: judgeKnown(state, rules, toRecipient(person)), variant: ownVariant(rules, person) };
  const undecided = decided.get(undefined)?.length ?? 0;
  return { template: rules.template.id, variants, undecided, skips, failed, asked };
}

/** The variant of a person whose id is known, which is what decides it. */
function ownVariant({ template }: OutreachRules, { id }: Contact): string | undefined {
  return id === undefined ? undefined : chooseVariant(template, id).label;
}

function note(skips: Map<SkipReason, Skipped>, reason: SkipReason, who: Recipient, limit: number): void {
  const skipped = skips.get(reason) ?? { count: 0, people: [] };
  skips.set(reason, skipped);
  skipped.count++;
  if (skipped.people.length < limit) skipped.people.push(who);
}

function addSamples(samples: Map<string, Sample>, rules: OutreachRules, contact: Contact): void {
  if (samples.size === rules.template.variants.length) return;
  for (const [variant, sample] of renderSamples(rules, contact)) {
    if (sample.rendered.ok && !samples.has(variant)) samples.set(variant, sample);
  }
}

function renderSamples({ template }: OutreachRules, contact: Contact): [string, Sample][] {
  const person = toRecipient(contact);
  return renderAll(template, messageRecipient(contact)).map(({ variant, rendered }) => [variant, { person, rendered }]);
}

/** Stand for what the network says of a person only when they are written to. */
export const STAND_INS = { name: "[name]", username: "[username]" } as const;

function messageRecipient({ id, username, name, fields }: Contact): MessageRecipient {
  return { key: id ?? "", username: username ?? STAND_INS.username, name: name ?? STAND_INS.name, fields };
}
