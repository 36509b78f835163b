import type { Recipient, RunEnd } from "../../../events/outreach.ts";
import { isTriedLast } from "../../../projections/contact-outreach-by-campaign.ts";
import type { Contact } from "../../../projections/contact-state.ts";
import { reasonToEnd, type RunSelection } from "../quota-and-reasons-to-end-run.ts";
import { OPENING_MARGIN_MS } from "../screening.ts";
import { isClosedFor, opensAt, windowZone } from "../send-window.ts";
import { invent, namedRecipient, skip, write, type Comparison, type HypotheticalRun } from "./compare-rules.ts";
import { createWalk, type WalkedBatch, type WalkTarget } from "./recipients-in-run-order.ts";
import { contactIn, decideIn, isSameDecision, toMoment, toRules, type Met, type Redecided } from "./redecide.ts";
import { namedSource, SOURCE_KINDS } from "../sources/open-sources.ts";

export function beginRun(
  comparison: Comparison,
  id: string,
  selection: RunSelection & { readonly recipients?: number },
): HypotheticalRun {
  const { would, sources, ms } = comparison;
  comparison.runs.would++;
  invent(comparison, "RunStarted", { run_id: id, dry_run: false, ...selection });
  const walked = selection.recipients === undefined ? sources : undefined;
  const begun = {
    walk: createWalk(would.state.contacts, walked, selection.campaign),
    open: [],
    source: "again",
  } as const;
  const state = { ...begun, open: [], seen: new Set<Contact>(), deferred: [], zones: new Set<string>() };
  return { id, startedMs: ms, ...state, resumeAt: undefined, waitsByItself: false, ended: undefined, isAlone: false };
}

export function finishRun(comparison: Comparison, { id, ended }: HypotheticalRun): void {
  const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  invent(comparison, "RunFinished", { run_id: id, reason: ended ?? "completed", ...counts });
  comparison.run = undefined;
}

/**
 * Gives a turn, in a hypothetical run, to all recipients before the target, or to all remaining ones if there is no
 * target.
 */
export function advance(comparison: Comparison, run: HypotheticalRun, target?: WalkTarget): void {
  const isOnWay = target === undefined || run.walk.leadsTo(target, run.open);
  if (isOnWay && !walkOn(comparison, run, target)) return;
  for (let [next] = run.deferred; next !== undefined && run.ended === undefined; [next] = run.deferred) {
    if (!visit(comparison, run, next)) return;
    run.deferred.shift();
  }
}

/**
 * Gives turns in a hypothetical run to recipients, in the run's order, until the next one is the target or none is
 * left. Returns false if the run has ended or can give no further recipient a turn.
 */
function walkOn(comparison: Comparison, run: HypotheticalRun, target: WalkTarget | undefined): boolean {
  while (run.ended === undefined) {
    const [next] = run.open;
    if (next === undefined) {
      const batch = run.walk.next(target);
      if (batch === undefined) return true;
      openBatch(comparison, run, batch);
      continue;
    }
    if (target !== undefined && next === target.contact) return true;
    if (!visit(comparison, run, { recipient: namedRecipient(comparison, next), source: namedSource(run.source) }))
      return false;
    run.open.shift();
  }
  return false;
}

/**
 * Begins a page of recipients in a hypothetical run. As in a real run, skips come before messages. Skipped recipients
 * stay on the page, because the pass over the recipients may have to stop at one.
 */
function openBatch(comparison: Comparison, run: HypotheticalRun, { source, people }: WalkedBatch): void {
  run.source = source;
  run.open = people.filter(
    (contact) =>
      !run.seen.has(contact) &&
      (source === "last" || !isTriedLast(contact, comparison.would.state.run.current?.campaign)),
  );
  for (const contact of run.open) {
    const met = { recipient: namedRecipient(comparison, contact), source: namedSource(source) };
    const decided = decideIn(comparison.would, comparison, met);
    if (decided.kind !== "skip" || decided.isRecorded) continue;
    const isSame = isSameDecision(decideIn(comparison.was, comparison, met), decided);
    if (!isSame) skip(comparison, run, met.recipient, decided.reason);
  }
}

/**
 * Gives a turn in the hypothetical run to a recipient who got no message from the log's run. False if the hypothetical
 * run can give no further recipient a turn.
 */
function visit(comparison: Comparison, run: HypotheticalRun, met: Met): boolean {
  const { was, would } = comparison;
  const contact = contactIn(would, met.recipient);
  if (contact !== undefined && run.seen.has(contact)) return true;
  const decided = decideIn(would, comparison, met);
  const before = decideIn(was, comparison, met);
  if (decided.kind === "skip") {
    if (!decided.isRecorded && !isSameDecision(before, decided)) skip(comparison, run, met.recipient, decided.reason);
  } else if (decided.kind === "closed") postpone(comparison, run, met.recipient, before);
  else if (decided.kind === "end") {
    // If the rules of the log's run would end the run here too, it is not ended here, because the log shows if and when
    // it really ended.
    if (before.kind !== "end") run.ended = decided.reason;
    return false;
  } else if (decided.kind === "write") {
    // If both sets of rules allow the message, but the log has none, something else prevented it and would do so again.
    // So no message is counted.
    const attempt = { attempt_id: `${run.id}/${run.seen.size}`, run_id: run.id, recipient: met.recipient };
    if (before.kind !== "write") write(comparison, attempt, decided.variant ?? "");
    if (contact !== undefined) run.seen.add(contact);
  }
  return true;
}

/**
 * Postpones a recipient's turn until their sending window opens. `before`: the decision by the rules of the log's run.
 */
export function postpone(
  { was, would, ms }: Comparison,
  run: HypotheticalRun,
  recipient: Recipient,
  before: Redecided,
): void {
  const { window } = would.rules;
  if (window === undefined) return;
  run.zones.add(windowZone(window, contactIn(would, recipient)?.timezone, toMoment(would, ms)));
  // If only the other rules make the run wait for the sending window, the log does not show how long. The hypothetical
  // run then waits until the window opens, even if the run in the log has ended by then.
  if (before.kind !== "closed" || was.rules.window?.whenClosed !== "pause") run.waitsByItself = true;
}

/**
 * Gives all remaining recipients of a hypothetical run a turn. If the run waits for closed sending windows, it resumes
 * when they open.
 */
export function completeRun(comparison: Comparison, run: HypotheticalRun): void {
  const { would, sources, ms } = comparison;
  advance(comparison, run);
  const { window } = would.rules;
  if (run.ended !== undefined || window === undefined || run.zones.size === 0) return;
  run.ended = reasonAtPaidSource(comparison);
  if (run.ended !== undefined) return;
  const openings = [...run.zones].map((zone) => opensAt(window, zone, toMoment(would, ms)));
  run.zones.clear();
  if (window.whenClosed === "end") {
    run.ended = "window_closed";
    return;
  }
  run.resumeAt = Math.min(...openings) + OPENING_MARGIN_MS;
  run.walk = createWalk(would.state.contacts, sources, would.state.run.current?.campaign);
  run.open = [];
}

/**
 * Returns why a hypothetical run ends before it reads a paid source, such as a used-up quota. Undefined if it
 * continues, or if a closed sending window keeps it from reading one.
 */
function reasonAtPaidSource({ would, sources, identities, ms }: Comparison): RunEnd | undefined {
  const now = toMoment(would, ms);
  const wanted = would.state.run.current?.source;
  const isRead = sources.some((name) => SOURCE_KINDS[name].isPaid && (wanted === undefined || wanted === name));
  if (!isRead || isClosedFor(would.rules.window, undefined, now)) return undefined;
  return reasonToEnd(would.state, toRules(would, identities), now);
}

/** Continues a waiting hypothetical run at each opening of its sending window before `until`. */
export function resumeUntil(comparison: Comparison, until: number): void {
  for (let { run } = comparison; run?.resumeAt !== undefined && run.resumeAt <= until; { run } = comparison) {
    const at = run.resumeAt;
    comparison.ms = at;
    run.resumeAt = undefined;
    run.waitsByItself = false;
    // The time limit is checked only after the log's run has ended; until then, the log shows how long the run lasted.
    if (run.isAlone && at > run.startedMs + comparison.runMaxMs) run.ended = "time_limit";
    else completeRun(comparison, run);
    if (run.isAlone && run.resumeAt === undefined) finishRun(comparison, run);
  }
}
