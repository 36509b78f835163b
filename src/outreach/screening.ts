import type { DataOf } from "../../events/catalog.ts";
import type { Recipient, RecipientSource, RunEnd } from "../../events/outreach.ts";
import { findContact, findPerson, isTriedLast } from "../../projections/contacts.ts";
import type { SocialUser } from "../networks/network.ts";
import { isoTime } from "../platform/clock.ts";
import {
  LOOKUP_BATCH,
  outreachState,
  type BatchEntry,
  type Reader,
  type RetryPolicy,
  type RunContext,
  type Source,
} from "./context.ts";
import { judgeKnown, judgeUser, type Refused } from "./decide.ts";
import { readNewMessages } from "./inbox.ts";
import { eraseLeftClicks } from "../recipients/record-consent.ts";
import { findOurs, wasRestoredToday } from "./after-restore.ts";
import { toRunEnd, stopReason } from "./run-end.ts";

/** What becomes of those who are met: a run writes and records, a dry run notes what a run would do. */
export interface RunActions {
  readonly retry: RetryPolicy;
  /** Of the day's quota. */
  placesLeft(): number;
  skip(refused: readonly Refused[]): Promise<void>;
  /** Writes to a recipient who passed all checks. Returns why the run ends with it; undefined: it goes on. */
  write(user: SocialUser, source: RecipientSource | undefined): Promise<RunEnd | undefined>;
  /** Called when all of a page were judged. */
  finishPage(read: Omit<DataOf<"SourceRead">, "run_id">): Promise<void>;
}

interface Screening extends RunActions {
  readonly run: RunContext;
  readonly reader: Reader;
  /** Network ids of those it asked about: sources overlap, and a list may name a recipient by handle and again by id. */
  readonly seen: Set<string>;
  /** Lower-case handle -> id, as the network showed them. */
  readonly ids: Map<string, string>;
}

/**
 * Goes through the recipients of all sources, one after the other, until something ends the run. Who is skipped, why, and in
 * what order is decided here and nowhere else, so that a dry run says what a run does.
 */
export async function screenRecipients(run: RunContext, treatment: RunActions): Promise<RunEnd> {
  if (wasRestoredToday(run)) return "log_restored";
  const { retry, placesLeft } = treatment;
  const wanted = (): number => Math.min(LOOKUP_BATCH, Math.max(1, placesLeft()));
  const screening: Screening = { ...treatment, run, reader: { run, retry, wanted }, seen: new Set(), ids: new Map() };
  try {
    // Opt-outs that came meanwhile are known before the first recipient is judged.
    await readNewMessages(run, retry);
    await eraseLeftClicks({ ...run, findLinkKeys: run.rules.findLinkKeys }, run);
    for (const source of run.sources) {
      const end = await screenSource(screening, source);
      if (end !== undefined) return end;
    }
    return stopReason(run) ?? "completed";
  } catch (fault) {
    return toRunEnd(run, fault);
  }
}

async function screenSource(screening: Screening, source: Source): Promise<RunEnd | undefined> {
  const { run, reader, placesLeft, finishPage } = screening;
  // Reading on would only show whether recipients are left, and cost money.
  const isUsedUp = (): boolean => source.paid && placesLeft() <= 0;
  if (run.signal.aborted) return stopReason(run);
  if (isUsedUp()) return "daily_limit_reached";
  for await (const { entries, read } of source.batches(reader)) {
    const end = await screenBatch(screening, source, entries);
    if (end !== undefined) return end;
    if (read !== undefined) await finishPage(read);
    if (isUsedUp()) return "daily_limit_reached";
  }
  return undefined;
}

async function screenBatch(
  screening: Screening,
  source: Source,
  entries: readonly BatchEntry[],
): Promise<RunEnd | undefined> {
  const { run, reader, placesLeft } = screening;
  const open = await screenKnown(screening, source, entries);
  for (let at = 0; at < open.length;) {
    if (run.signal.aborted) return stopReason(run);
    if (placesLeft() <= 0) return "daily_limit_reached";
    // A look-up is paid for each recipient, so no more are asked about than there are places.
    const size = reader.wanted();
    for (const user of await screenUsers(screening, open.slice(at, at + size))) {
      if (run.signal.aborted) return stopReason(run);
      const end = await writeUnlessFound(screening, user, source);
      if (end !== undefined) return end;
    }
    at += size;
  }
  return stopReason(run);
}

/** Skips those that the log rules out; returns the others. */
async function screenKnown(
  { run, seen, ids, skip }: Screening,
  source: Source,
  entries: readonly BatchEntry[],
): Promise<readonly BatchEntry[]> {
  const open: BatchEntry[] = [];
  const refused: Refused[] = [];
  const state = outreachState(run);
  for (const { recipient: named, user } of entries) {
    const id = named.id ?? ids.get(toHandleKey(named)) ?? findContact(state.contacts, named)?.id;
    const recipient = { ...named, ...(id === undefined ? {} : { id }) };
    if (user !== undefined) ids.set(toHandleKey(user), user.id);
    const contact = findPerson(state.contacts, recipient);
    // Their turn comes with the last source only.
    const isHeldBack = source.last !== true && contact !== undefined && isTriedLast(contact);
    if ((id !== undefined && seen.has(id)) || isHeldBack) continue;
    const verdict = judgeKnown(state, run.rules, recipient, user, contact);
    if (verdict.verdict === "ask") open.push({ recipient, ...(user === undefined ? {} : { user }) });
    else refused.push({ recipient, verdict });
  }
  await skip(refused);
  return open;
}

/** Looks the recipients up in the network and skips those that it rules out; returns the others. */
async function screenUsers(
  { run, seen, ids, retry, skip }: Screening,
  open: readonly BatchEntry[],
): Promise<readonly SocialUser[]> {
  const users: SocialUser[] = [];
  const refused: Refused[] = [];
  for (const { entry, user } of await retry(() => lookUp(run, open))) {
    if (user === undefined) {
      refused.push({ recipient: entry.recipient, verdict: { verdict: "skip", reason: "invalid_recipient" } });
      continue;
    }
    if (seen.has(user.id)) continue;
    seen.add(user.id);
    ids.set(toHandleKey(user), user.id);
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

/** After a restore a recipient may have a message that the log lost. */
async function writeUnlessFound(
  { run, retry, skip, write }: Screening,
  user: SocialUser,
  { name }: Source,
): Promise<RunEnd | undefined> {
  const ours = await findOurs(run, retry, user);
  if (ours === "none") return write(user, name === "again" || name === "last" ? undefined : name);
  if (ours === "unknown") return undefined;
  const found = { message_id: ours.id, sent_at: isoTime(ours.createdAt) };
  const verdict = { verdict: "skip", reason: "already_contacted", found } as const;
  await skip([{ recipient: { id: user.id, username: user.username }, verdict }]);
  return undefined;
}

/**
 * Asks the network for those entries whose source did not: at most one request by id and one by handle.
 * `user` is undefined where the network knows none of that name. Throws the network's SocialError.
 */
async function lookUp(
  { network, credentials }: Pick<RunContext, "network" | "credentials">,
  entries: readonly BatchEntry[],
) {
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
