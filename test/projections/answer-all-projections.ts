import { createHash } from "node:crypto";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { projectionOf, PROJECTION_NAMES } from "../../projections/all.ts";
import { contacts } from "../../projections/contacts.ts";
import { fold } from "../../projections/projection.ts";
import type { Results } from "../../projections/message-outcomes-and-reactions.ts";
import { rewindContacts } from "../../projections/rewind-contacts.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { createStates } from "../../projections/fold-states.ts";
import { survey } from "../../src/outreach/judge-recipients.ts";
import { createWhatIf } from "../../src/outreach/what-if/decide-recorded-runs-again.ts";
import { describeEvent } from "../../src/history/event-sentences.ts";
import { toRecipientJson } from "../../src/recipients/recipient-json.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";

/** Projection that the version before campaigns did not have. */
const NEW = "campaigns";

/**
 * Answers what the log knew after these events: all states, all recipients as the API shows them, who would get a
 * message, what other rules had done, and each event in words. Long answers are hashed.
 */
export async function answerAll(events: readonly Recorded[]): Promise<Readonly<Record<string, string>>> {
  const states = PROJECTION_NAMES.filter((name) => (name as string) !== NEW).map((name) => {
    const projection = projectionOf(name);
    const folded = fold(projection, projection.initial(), events);
    // Later versions added three members, which the old answers do not have: `signals` (costs by day) to the runs,
    // `decisions` on dead letters to the news, and `contacted` to the counts of messages.
    const added = name === "runs" ? { signals: undefined } : name === "news" ? { decisions: undefined } : undefined;
    const known = added === undefined ? folded : { ...(folded as object), ...added };
    const encoded = encodeState(name === "results" ? toFormerResults(folded as Results) : known);
    const state = name === "stats" || name === "timeline" ? encoded.replaceAll(/,"contacted":\d+/g, "") : encoded;
    // Later versions give each message a campaign. The messages in these logs have none, so it is `default`.
    return [`state ${name}`, withoutOwnLinks(state.replaceAll('"campaign":"default",', ""))] as const;
  });
  const people = fold(contacts, contacts.initial(), events);
  const folded = createStates(PROJECTION_NAMES);
  for (const event of events) folded.evolve(event);
  const rules = { ...RULES, template: parseTemplate("Hi {{name|you}}\n---\nHello {{name|you}}") };
  const ms = Date.parse(events.at(-1)?.time ?? "2026-11-20T10:00:00.000Z");
  const asked = { recipient: undefined, limit: 5, selection: {} };
  const { held, ...counts } = await survey({ ...folded.all(), ms }, rules, asked);
  const { template, dailyLimit, requireConsent, stopAfterFailures, window } = rules;
  const today = { template, dailyLimit, requireConsent, stopAfterFailures, window, gapDays: 30, timezone: "UTC" };
  const whatIf = createWhatIf({
    changes: { dailyLimit: 1, requireConsent: false },
    isBot: undefined,
    stopWords: undefined,
    today,
    sources: ["list", "inbound"],
    runMaxMs: 600_000,
    limit: 20,
    identities: { hashes: rules.hashes, isForgotten: rules.isForgotten },
  });
  for (const event of events) whatIf.take(event);
  const plain = (value: unknown): string => encodeState(value);
  const answers = [
    ...states,
    ["recipients", plain([...people.people.values()].map(toRecipientJson))],
    // Later versions count held recipients separately. The old answers count them among those whose message failed.
    ["preview", plain({ ...counts, failed: counts.failed + held })],
    ["what if", plain(await whatIf.finish(ms))],
    ["words", plain(events.map(describeEvent))],
  ] as const;
  return Object.fromEntries(answers.map(([name, text]) => [name, text.length < 80 ? text : hash(text)]));
}

/**
 * Converts results to the form of the old version: without positions, and with only the last message to each recipient
 * in the index by handle.
 */
function toFormerResults(state: Results) {
  const handles = new Map<string, number[]>();
  const sent = [...state.messages].filter(([, { outcome }]) => outcome === "sent");
  for (const [number, { superseded, username }] of sent.toSorted(([, one], [, other]) => one.settled - other.settled)) {
    const former = state.messages.get(superseded)?.username;
    const left = (handles.get(former ?? "") ?? []).filter((one) => one !== superseded);
    if (former !== undefined && left.length > 0) handles.set(former, left);
    else if (former !== undefined) handles.delete(former);
    handles.getOrInsertComputed(username, () => []).push(number);
  }
  const messages = [...state.messages].map(([number, { group, at, id, username, links, outcome, ...message }]) => {
    const { seen, replied, opted_out, tracked } = message;
    const reactions = { seen: seen > 0, replied: replied > 0, opted_out: opted_out > 0 };
    const counted = tracked && { ...tracked, clicks: tracked.clicks.length, suspected: tracked.suspected.length };
    return [number, { group, at, id, username, links, outcome, ...reactions, tracked: counted }] as const;
  });
  const { groups, templates, links, open, sent: last, codes, tracked } = state;
  return { groups, templates, links, messages: new Map(messages), open, sent: last, handles, codes, tracked };
}

/** Folds the contacts from all events, rewinds the contacts to `position`, and returns a hash of the result. */
export function rewound(events: readonly Recorded[], position: number): string {
  const steps = rewindContacts(fold(contacts, contacts.initial(), events), position);
  for (let step = steps.next(); ; step = steps.next())
    if (step.done === true) return hash(withoutOwnLinks(encodeState(step.value)));
}

/**
 * Removes `own_links` from contacts: the links of each campaign's newest message. Later versions added this member,
 * which no answer shows.
 */
function withoutOwnLinks(state: string): string {
  const member = /"own_links":(?:null|\{[^}]*\})/;
  return state.replaceAll(new RegExp(`,${member.source}|${member.source},?`, "g"), "");
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
