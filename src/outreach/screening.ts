import type { DataOf } from "../../events/catalog.ts";
import type { Recipient, RecipientSource, RunEnd } from "../../events/outreach.ts";
import { findContact, findPerson, isTriedLast, type Contact } from "../../projections/contacts.ts";
import type { SocialUser } from "../networks/network.ts";
import { isoTime } from "../platform/clock.ts";
import {
  LOOKUP_BATCH,
  outreachState,
  quotaNow,
  type BatchEntry,
  type Reader,
  type RetryPolicy,
  type RunContext,
  type Source,
} from "./context.ts";
import { judgeKnown, judgeUser, sourceFor, type Refused } from "./decide.ts";
import { readNewMessages } from "./inbox.ts";
import { eraseLeftClicks } from "../recipients/record-consent.ts";
import { chooseVariant } from "../template/template.ts";
import { findOurs, wasRestoredToday } from "./after-restore.ts";
import { toRunEnd, stopReason } from "./run-end.ts";
import { isSelected, placesLeft, reasonToEnd } from "./run-limits.ts";
import { isClosedFor, opensAt, windowZone } from "./send-window.ts";
import { namedSource, SOURCE_KINDS } from "./sources/sources.ts";

/** The actions on recipients: a run writes and records, a dry run notes what a run would do. */
export interface RunActions {
  readonly retry: RetryPolicy;
  /** True if it waits for the window to open for the remaining recipients; false if it ends. */
  readonly pausesWhenClosed: boolean;
  /** Messages that a run would have sent, but this dry run did not. */
  planned(): number;
  skip(refused: readonly Refused[]): Promise<void>;
  /**
   * Writes to a recipient who passed all checks. Returns why the run ends, `closed` if the recipient's window is
   * closed, or undefined.
   */
  write(user: SocialUser, source: RecipientSource | undefined): Promise<RunEnd | "closed" | undefined>;
  /** Called when all recipients of a page were judged. */
  finishPage(read: Omit<DataOf<"SourceRead">, "run_id">): Promise<void>;
}

interface Screening extends RunActions, Reader {
  /**
   * Network ids of recipients it asked about, and `@` with the lower-case handle of those unknown to the network.
   * Sources overlap, and a list may name a recipient by handle and again by id.
   */
  readonly seen: Set<string>;
  /** Ids by lower-case handle, as the network showed them. */
  readonly ids: Map<string, string>;
  /** Zones where the window was closed for recipients, in this pass through the sources. */
  readonly closedZones: Set<string>;
  /** True if recipients of the source were passed over, so that a later read must find them again. */
  isSourceUnfinished: boolean;
}

/** Why a run ends. `until`: when the window opens for the next recipient (ISO 8601). */
export interface Ended {
  readonly reason: RunEnd;
  readonly until?: string;
}

/**
 * Goes through the recipients of all sources, one after the other, until something ends the run. Only this code decides
 * who is skipped, why, and in what order, so that a dry run shows what a run does.
 */
export async function screenRecipients(run: RunContext, actions: RunActions): Promise<Ended> {
  if (wasRestoredToday(run)) return { reason: "log_restored" };
  const left = (): number => placesLeft(outreachState(run), run.rules, quotaNow(run)) - actions.planned();
  const wanted = () => Math.min(LOOKUP_BATCH, Math.max(1, left()));
  const met = { seen: new Set<string>(), ids: new Map<string, string>(), closedZones: new Set<string>() };
  const screening: Screening = { ...actions, ...met, run, wanted, isSourceUnfinished: false };
  try {
    for (;;) {
      const end = await screenSources(screening);
      if (end !== undefined) return { reason: end };
      const opening = nextOpening(screening);
      if (opening === undefined) return { reason: "completed" };
      // The window may have opened since they were passed over.
      const isClosed = opening > run.clock();
      if (isClosed && !actions.pausesWhenClosed) return { reason: "window_closed", until: isoTime(opening) };
      await run.pause("window_closed", opening);
      await run.sleep(OPENING_MARGIN_MS, run.signal);
    }
  } catch (fault) {
    return { reason: toRunEnd(run, fault) };
  }
}

/**
 * Waited after an opening. An instance's clock may be slightly ahead of the log's, and nothing must be recorded before
 * the opening or on the day before.
 */
export const OPENING_MARGIN_MS = 1_000;

/** Goes through all sources, for recipients whose window is open. */
async function screenSources(screening: Screening): Promise<RunEnd | undefined> {
  const { run, retry, closedZones } = screening;
  const { metadata, lease, rules } = run;
  closedZones.clear();
  // Opt-outs that arrived meanwhile are known before the first recipient is judged.
  await readNewMessages(run, retry);
  await eraseLeftClicks({ ...run, findLinkKeys: rules.findLinkKeys }, { metadata, lease });
  for (const source of run.sources) {
    const end = await screenSource(screening, source);
    if (end !== undefined) return end;
  }
  return stopReason(run);
}

async function screenSource(screening: Screening, source: Source): Promise<RunEnd | undefined> {
  const { run, finishPage } = screening;
  // Reading more would only show if recipients are left, and costs money.
  const endIfPaid = (): RunEnd | undefined => (SOURCE_KINDS[source.name].isPaid ? endNow(screening) : undefined);
  if (run.signal.aborted) return stopReason(run);
  if (!isSourceSelected(run, source) || isClosedToRead(screening, source)) return undefined;
  const end = endIfPaid();
  if (end !== undefined) return end;
  screening.isSourceUnfinished = false;
  for await (const { entries, read } of source.batches(screening)) {
    const ended = await screenBatch(screening, source, entries);
    if (ended !== undefined) return ended;
    if (read !== undefined && !screening.isSourceUnfinished) await finishPage(read);
    const endedNow = endIfPaid();
    if (endedNow !== undefined) return endedNow;
    if (isClosedToRead(screening, source)) return undefined;
  }
  return undefined;
}

/** Returns why nothing more is sent; undefined if places are left. */
function endNow({ run, planned }: Screening): RunEnd | undefined {
  return reasonToEnd(outreachState(run), run.rules, quotaNow(run), planned());
}

/**
 * Recipients of a paid source mostly have no known time zone, so it is not read while the window is closed in the
 * quota's zone.
 */
function isClosedToRead(screening: Screening, source: Source): boolean {
  return SOURCE_KINDS[source.name].isPaid && isLater(screening, undefined);
}

/** True if the window is closed for the recipient, whose turn then comes later. */
function isLater(screening: Screening, contact: Contact | undefined): boolean {
  const { run } = screening;
  const isLate = isClosedFor(run.rules.window, contact, quotaNow(run));
  if (isLate) postpone(screening, contact);
  return isLate;
}

function postpone(screening: Screening, contact: Contact | undefined): void {
  const { run, closedZones } = screening;
  const { window } = run.rules;
  if (window !== undefined) closedZones.add(windowZone(window, contact?.timezone, quotaNow(run)));
  screening.isSourceUnfinished = true;
}

/** Returns when the window opens for the first postponed recipient, ms since the epoch; undefined if there are none. */
function nextOpening({ run, closedZones }: Screening): number | undefined {
  const { window } = run.rules;
  if (window === undefined || closedZones.size === 0) return undefined;
  const now = quotaNow(run);
  return Math.min(...[...closedZones].map((zone) => opensAt(window, zone, now)));
}

/** Sources of retried recipients are always read. For each of these it is known only if they are listed. */
function isSourceSelected({ projector }: RunContext, { name }: Source): boolean {
  const wanted = projector.state("run").current?.source;
  return wanted === undefined || [wanted, undefined].includes(namedSource(name));
}

/** True if the run is not for this recipient. */
function isLeftOut(screening: Screening, source: Source, recipient: Recipient, contact: Contact | undefined): boolean {
  const { rules, projector } = screening.run;
  const { current } = projector.state("run");
  const id = recipient.id ?? contact?.id;
  const found = {
    // Costs a hash for each recipient of a list, which most runs do not need.
    variant: current?.variant === undefined || id === undefined ? undefined : chooseVariant(rules.template, id).label,
    basis: contact?.basis ?? "none",
    source: sourceFor(namedSource(source.name), contact),
  } as const;
  if (isSelected(current, found)) return false;
  screening.isSourceUnfinished = true;
  return true;
}

async function screenBatch(screening: Screening, source: Source, entries: readonly BatchEntry[]) {
  const { run, seen } = screening;
  const open = await screenKnown(screening, source, entries);
  for (let at = 0; at < open.length;) {
    if (run.signal.aborted) return stopReason(run);
    const end = endNow(screening);
    if (end !== undefined) return end;
    // Each look-up of a recipient costs money, so no more are looked up than there are places.
    const size = screening.wanted();
    const asked = open.slice(at, at + size).filter(({ recipient }) => !isLater(screening, find(run, recipient)));
    for (const user of await screenUsers(screening, source, asked)) {
      if (run.signal.aborted) return stopReason(run);
      const written = await writeUnlessFound(screening, user, source);
      // They are asked about again when their turn comes, which may be on another day.
      if (written === "closed") seen.delete(user.id);
      else if (written !== undefined) return written;
    }
    at += size;
  }
  return stopReason(run);
}

function find(run: RunContext, recipient: Recipient): Contact | undefined {
  return findPerson(run.projector.state("contacts"), recipient);
}

/** Skips recipients that the log rules out, and leaves out those that the run is not for; returns the others. */
async function screenKnown(screening: Screening, source: Source, entries: readonly BatchEntry[]) {
  const { run, seen, ids, skip } = screening;
  const open: BatchEntry[] = [];
  const refused: Refused[] = [];
  const state = outreachState(run);
  for (const { recipient: named, user } of entries) {
    const id = named.id ?? ids.get(toHandleKey(named)) ?? findContact(state.contacts, named)?.id;
    const recipient = { ...named, ...(id === undefined ? {} : { id }) };
    if (user !== undefined) ids.set(toHandleKey(user), user.id);
    const contact = findPerson(state.contacts, recipient);
    // Their turn comes only with the last source.
    const isHeldBack = source.name !== "last" && contact !== undefined && isTriedLast(contact);
    if (seen.has(id ?? `@${toHandleKey(named)}`) || isHeldBack) continue;
    if (isLeftOut(screening, source, recipient, contact)) continue;
    const verdict = judgeKnown(state, run.rules, recipient, user, contact);
    if (verdict.verdict === "ask") open.push({ recipient, ...(user === undefined ? {} : { user }) });
    else refused.push({ recipient, verdict });
  }
  await skip(refused);
  return open;
}

/** Looks the recipients up in the network and skips those that it rules out; returns the others. */
async function screenUsers(screening: Screening, source: Source, open: readonly BatchEntry[]) {
  const { run, seen, ids, retry, skip } = screening;
  const users: SocialUser[] = [];
  const refused: Refused[] = [];
  for (const { entry, user } of await retry(() => lookUp(run, open))) {
    if (user === undefined) {
      seen.add(entry.recipient.id ?? `@${toHandleKey(entry.recipient)}`);
      refused.push({ recipient: entry.recipient, verdict: { verdict: "skip", reason: "invalid_recipient" } });
      continue;
    }
    if (seen.has(user.id)) continue;
    seen.add(user.id);
    ids.set(toHandleKey(user), user.id);
    if (isLeftOut(screening, source, user, find(run, user))) continue;
    const verdict = judgeUser(outreachState(run), run.rules, user);
    if (verdict.verdict === "write") users.push(user);
    else refused.push({ recipient: { id: user.id, username: user.username }, verdict });
  }
  await skip(refused);
  return users;
}

function toHandleKey({ username = "" }: Recipient): string {
  return username.toLowerCase();
}

/** Writes to a recipient, unless a message that the log lost in a restore is found. */
async function writeUnlessFound(screening: Screening, user: SocialUser, source: Source) {
  const { run, retry, skip, write } = screening;
  if (isLater(screening, find(run, user))) return "closed";
  const ours = await findOurs(run, retry, user);
  if (ours === "none") {
    const written = await write(user, namedSource(source.name));
    if (written === "closed") postpone(screening, find(run, user));
    return written;
  }
  if (ours === "unknown") return undefined;
  const found = { message_id: ours.id, sent_at: isoTime(ours.createdAt) };
  const verdict = { verdict: "skip", reason: "already_contacted", found } as const;
  await skip([{ recipient: { id: user.id, username: user.username }, verdict }]);
  return undefined;
}

/**
 * Asks the network about entries whose source did not, with at most one request by id and one by handle. `user` is
 * undefined if the network does not know the name. Throws the network's SocialError.
 */
async function lookUp({ network, credentials }: RunContext, entries: readonly BatchEntry[]) {
  const asked = entries.filter(({ user }) => user === undefined).map(({ recipient }) => recipient);
  const ids = asked.flatMap(({ id }) => id ?? []);
  const handles = asked.flatMap(({ id, username }) => (id === undefined ? (username ?? []) : []));
  const found = [
    ...(ids.length === 0 ? [] : await credentials.use((token) => network.usersById(token, ids))),
    ...(handles.length === 0 ? [] : await credentials.use((token) => network.usersByUsername(token, handles))),
  ];
  const byId = new Map(found.map((user) => [user.id, user]));
  const byHandle = new Map(found.map((user) => [user.username.toLowerCase(), user]));
  return entries.map((entry) => {
    const { id, username = "" } = entry.recipient;
    const match = id === undefined ? byHandle.get(username.toLowerCase()) : byId.get(id);
    return { entry, user: entry.user ?? match };
  });
}
