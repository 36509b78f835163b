import { markOfErased } from "../../../events/declare-personal-members.ts";
import type { Basis, Recipient, RecipientSource, RunEnd, SkipReason } from "../../../events/outreach.ts";
import { findContact, findPerson } from "../../../projections/contact-identity.ts";
import { consentForCampaign } from "../../../projections/contact-outreach-by-campaign.ts";
import type { Contact } from "../../../projections/contact-state.ts";
import { createStates } from "../../../projections/fold-states.ts";
import { chooseVariant } from "../../template/template.ts";
import { isSkipRecorded, judgeKnown, sourceFor, type OutreachRules, type OutreachState } from "../decide.ts";
import { momentIn } from "../quota-day.ts";
import { isSelected, reasonToEnd } from "../quota-and-reasons-to-end-run.ts";
import { isClosedFor, type TurnMoment } from "../send-window.ts";
import { rulesForCampaign, type RulesInForce } from "../run-rules.ts";

/** Functions that tell if a recipient is suppressed or erased. They do not depend on the rules. */
export interface Identities {
  readonly hashes: OutreachRules["hashes"];
  readonly isForgotten: OutreachRules["isForgotten"];
}

export type World = ReturnType<typeof createWorld>;

/**
 * Creates one world of a what-if comparison: states folded under the rules of the log's runs, or under the other rules.
 */
export function createWorld(rules: RulesInForce) {
  const states = createStates(["run", "quota", "contacts", "account", "campaigns", "links"]);
  return {
    /** Moment of the decision that is made again, ms since 1970. */
    ms: 0,
    get state(): OutreachState {
      return { ...states.all(), ms: this.ms };
    },
    rules,
    fold: states.evolve,
  };
}

export function toMoment({ rules }: World, ms: number): TurnMoment {
  return { ...momentIn(rules.timezone, ms), clockMs: ms };
}

/**
 * A decision about a recipient that a what-if calculation takes from the log's states alone, without asking the
 * network. `none`: no run was in progress that sends messages.
 */
export type Redecided =
  | { readonly kind: "write"; readonly variant: string | undefined }
  | { readonly kind: "skip"; readonly reason: SkipReason; readonly isRecorded: boolean }
  | { readonly kind: "end"; readonly reason: RunEnd }
  | { readonly kind: "pass" | "left_out" | "closed" | "none" };

/** A recipient that a hypothetical run decides about, and the source in which the run finds them. */
export interface Met {
  readonly recipient: Recipient;
  readonly source?: RecipientSource | undefined;
  /** Basis that the log recorded with the message; used if the recipient's data was erased since. */
  readonly basis?: Basis | undefined;
}

export function toRules({ rules, state }: World, identities: Identities): OutreachRules {
  const own = rulesForCampaign(rules, state.campaigns, state.run.current?.campaign);
  return { ...own, ...identities, findLinkKeys: () => [] };
}

interface Circumstances {
  readonly identities: Identities;
  /**
   * Time at which the run made its decision, in ms since 1970. Quota day and sending window are judged for this time,
   * not for now.
   */
  readonly ms: number;
}

/**
 * Decides about a recipient by the same functions that a run uses. `world`: the rules and states by which it decides,
 * either those of the log or those of the what-if question's hypothetical run.
 */
export function decideIn(world: World, { identities, ms }: Circumstances, met: Met): Redecided {
  world.ms = ms;
  const { state } = world;
  const now = toMoment(world, ms);
  const { recipient, source } = met;
  const { current } = state.run;
  if (current === null || current.dry_run) return { kind: "none" };
  const rules = toRules(world, identities);
  const contact = findPerson(state.contacts, recipient);
  const id = recipient.id ?? contact?.id;
  const variant = id === undefined ? undefined : chooseVariant(rules.template, id).label;
  const basis = (contact && consentForCampaign(contact, rules).basis) ?? met.basis ?? "none";
  if (!isSelected(current, { variant, basis, source: sourceFor(source, contact) })) return { kind: "left_out" };
  if (recipient.id !== undefined && markOfErased(recipient.id) !== undefined) {
    if (rules.requireConsent && basis === "none") return { kind: "skip", reason: "no_consent", isRecorded: false };
  } else {
    const verdict = judgeKnown(state, rules, recipient, undefined, contact);
    if (verdict.verdict === "pass") return { kind: "pass" };
    if (verdict.verdict === "skip") {
      const { reason } = verdict;
      return { kind: "skip", reason, isRecorded: isSkipRecorded(state, rules, recipient, reason) };
    }
  }
  const end = reasonToEnd(state, rules, now);
  if (end !== undefined) return { kind: "end", reason: end };
  return isClosedFor(rules.window, contact, now) ? { kind: "closed" } : { kind: "write", variant };
}

/**
 * True if the run in progress under these rules could write to another recipient that only the network knows, not the
 * log.
 */
export function mayGoOn(world: World, { identities, ms }: Circumstances): boolean {
  const now = toMoment(world, ms);
  const end = reasonToEnd(world.state, toRules(world, identities), now);
  return end === undefined && !isClosedFor(world.rules.window, undefined, now);
}

export function isSameDecision(one: Redecided, other: Redecided): boolean {
  if (one.kind === "skip" && other.kind === "skip")
    return one.reason === other.reason && one.isRecorded === other.isRecorded;
  // A what-if question counts only changed decisions. Two messages with different texts, or two ends of a run for
  // different reasons, are the same decision.
  return one.kind === other.kind;
}

export function contactIn({ state }: World, recipient: Recipient): Contact | undefined {
  return findContact(state.contacts, recipient);
}
