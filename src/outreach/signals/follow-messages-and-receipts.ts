import { LeaseLost } from "eventstore-lite";
import { findPerson } from "../../../projections/contact-identity.ts";
import { toRecipient, type Contact } from "../../../projections/contact-state.ts";
import { handle, type AppendDecision } from "../../log/decide-and-append.ts";
import { SERVICE_METADATA, STREAMS, type NewEvent } from "../../log/event-log.ts";
import type { HeldLease } from "../../log/leases-and-roles.ts";
import { SocialError, type Signal, type SignalStream } from "../../networks/network.ts";
import { NetworkFault } from "../../networks/safe-fetch.ts";
import { backoffMs, isoTime } from "../../platform/clock-ids-and-timers.ts";
import { createCoalescingScheduler } from "../../platform/coalescing-scheduler.ts";
import { errorFields } from "../../platform/logger.ts";
import { untilAborted, workUntilDisposed } from "../../platform/signals.ts";
import { outreachState, RUN_ATTEMPTS_MAX, type OutreachContext, type ReplyRules } from "../run-context.ts";
import type { OutreachState } from "../decide.ts";
import { decideReceived, isUndecided, readNewMessages } from "../read-and-record-inbox-messages.ts";
import { createMeter, priceMessages } from "../network-cost-in-usd.ts";
import { createRetry, READ_ATTEMPTS_MAX } from "../pacing-and-retries.ts";

/**
 * The context of outreach with the network's stream of signals, its notifications of messages, read receipts and
 * revoked authorizations.
 */
export interface SignalContext extends OutreachContext {
  readonly stream: SignalStream;
}

/** A signal that may lead to events: a message, a message in X Chat, or a read receipt. */
type AcceptedSignal = Extract<Signal, { kind: "message" | "chat" | "read" }>;

/** Minimum time between two readings of the inbox, in ms: X allows 15 reads of messages in 15 minutes. */
const GAP_MS_MIN = 60_000;

/**
 * Time in ms after which an open stream of signals counts as steady: when it ends, the waits between attempts to open
 * it begin at the shortest again.
 */
const STEADY_MS = 60_000;

/**
 * Number of failed attempts in a row to open the network's stream of signals (notifications of messages and receipts)
 * after which the log records the failure. A refusal by the network is recorded at once.
 */
const ATTEMPTS_NOTED = 5;

/**
 * Times to wait before the next attempt, as X prescribes: https://docs.x.com/x-api/fundamentals/handling-disconnections
 */
const UNREACHABLE = { stepMs: 250, maxMs: 16_000 };
const UNAVAILABLE = { baseMs: 5_000, factor: 2, maxMs: 320_000 };
const REFUSED = { baseMs: 60_000, factor: 2, maxMs: 15 * 60_000 };

/** Maximum number of remembered ids of charged signals. The network may repeat a signal, which is charged once. */
const REMEMBERED_MAX = 1_000;

/**
 * Follows the network's stream of signals (notifications of messages and read receipts) for the linked account until
 * disposed. After the stream opens, the inbox is read, because the network does not repeat signals missed before.
 */
export function followSignals(context: SignalContext, lease: HeldLease): AsyncDisposable {
  return workUntilDisposed(async (stopping) => {
    const { projector, sleep } = context;
    const gap = createGapReading(context, lease, stopping);
    const charged = new Set<string>();
    let attempt = 0;
    while (!stopping.aborted) {
      const changed = new AbortController();
      const unlisten = projector.listen(({ type }) => {
        if (type === "AccountAuthorized" || type === "AccountUnlinked") changed.abort();
      });
      const signal = AbortSignal.any([stopping, changed.signal]);
      const { user, authorized } = projector.state("account");
      if (user === null || !authorized) await untilAborted(signal);
      else {
        const startedAt = performance.now();
        const fault = await followOnce(context, { lease, signal, gap, charged, userId: user.id });
        attempt = performance.now() - startedAt > STEADY_MS ? 0 : attempt + 1;
        if (!signal.aborted) {
          await noteFault(context, lease, fault, attempt);
          await sleep(waitMs(context, fault, attempt), signal);
        }
      }
      unlisten();
    }
    await gap.stop();
  });
}

interface Following {
  readonly lease: HeldLease;
  readonly signal: AbortSignal;
  readonly gap: ReturnType<typeof createGapReading>;
  /**
   * Ids of the newest signals whose cost is recorded: the network charges for each signal, and a signal that is
   * delivered again is not recorded as charged twice.
   */
  readonly charged: Set<string>;
  readonly userId: string;
}

/** Follows the stream of signals until it ends. Returns the fault that ended it; undefined if the network ended it. */
async function followOnce(context: SignalContext, following: Following): Promise<unknown> {
  const { stream, credentials } = context;
  const { lease, signal, gap, userId } = following;
  try {
    const refused = await credentials.use((token) => stream.subscribe(token, userId));
    const signals = await stream.open(userId, signal);
    await noteStream(context, lease, { open: true, details: [...refused] });
    gap.ask();
    for await (const one of signals) await accept(context, following, one);
    return undefined;
  } catch (fault) {
    return fault;
  }
}

async function accept(context: SignalContext, following: Following, signal: Signal): Promise<void> {
  const { lease, gap, charged, userId } = following;
  if (signal.kind === "unclear") return gap.ask();
  if (signal.kind === "revoked") {
    if (signal.userId === userId) await checkGrant(context);
    return;
  }
  const id = signal.kind === "message" ? signal.message.id : signal.kind === "chat" ? signal.id : undefined;
  const isCharged = id !== undefined && !charged.has(id);
  const decide = (): AppendDecision<never> => {
    const events = decideSignal(outreachState(context), context, signal);
    return { events: isCharged ? [...events, toCharge(context, signal)] : events };
  };
  await handle(context, STREAMS.outreach, decide, { metadata: SERVICE_METADATA, lease, attempts: RUN_ATTEMPTS_MAX });
  if (!isCharged) return;
  charged.add(id);
  const [oldest] = charged;
  if (charged.size > REMEMBERED_MAX && oldest !== undefined) charged.delete(oldest);
}

/**
 * Renews the access token after a signal that the user revoked the app. If the network refuses the renewal, the log
 * records that the grant is dead.
 */
async function checkGrant({ credentials }: SignalContext): Promise<void> {
  try {
    await credentials.use(() => Promise.reject(new SocialError("unauthorized", "the user revoked the app")));
  } catch (fault) {
    if (!(fault instanceof SocialError)) throw fault;
  }
}

/** Returns the event for a signal that the network charges for. A signal of X Chat costs as much as a message. */
function toCharge({ prices }: SignalContext, { kind }: AcceptedSignal): NewEvent {
  return {
    type: "SignalsReceived",
    data: { messages: 1, chats: kind === "chat" ? 1 : 0, usage: priceMessages(1, prices) },
  };
}

const FOUND = { via: "stream" } as const;

/**
 * Returns the events that a signal (the network's notification of a message or a read receipt) adds to the log. Returns
 * none if the log already has them. Signals may arrive in any order.
 */
function decideSignal(state: OutreachState, rules: ReplyRules, signal: AcceptedSignal): readonly NewEvent[] {
  if (signal.kind === "message") {
    const decided = decideReceived(state, rules, [signal.message], FOUND);
    return "events" in decided ? decided.events : [];
  }
  const senderId = signal.kind === "chat" ? signal.senderId : signal.readerId;
  const contact = findPerson(state.contacts, { id: senderId });
  const recipient = toRecipient({ id: senderId, username: contact?.username });
  if (senderId === state.account.user?.id) return [];
  if (signal.kind === "read") {
    const seen_at = contact && seenAt(contact, signal);
    return seen_at === undefined ? [] : [{ type: "DirectMessagesSeen", data: { recipient, seen_at } }];
  }
  const { id: message_id, createdAt, inGroup } = signal;
  // A message to a group counts only if the log knows its sender.
  if (inGroup && contact === undefined) return [];
  if (!isUndecided(state, rules.rules, recipient, createdAt)) return [];
  const data = { recipient, message_id, received_at: isoTime(createdAt), reason: "x_chat", ...FOUND } as const;
  return [{ type: "RecipientHeld", data }];
}

/**
 * Returns the time at which the recipient read our newest message, ISO 8601. Undefined if the receipt is for an older
 * message, or the log already records a read.
 */
function seenAt(contact: Contact, { at, lastReadId }: Extract<Signal, { kind: "read" }>): string | undefined {
  const { attempted_at, message_id, seen_at } = contact;
  if (attempted_at === undefined || seen_at !== undefined) return undefined;
  const isNamed = lastReadId !== undefined && message_id !== undefined;
  const isReached = isNamed ? BigInt(lastReadId) >= BigInt(message_id) : at >= Date.parse(attempted_at);
  // The network's clock may be behind the log's clock. A message cannot be read before it is sent, so the time of the
  // receipt is at least the time of the attempt.
  return isReached ? isoTime(Math.max(at, Date.parse(attempted_at))) : undefined;
}

/**
 * Creates the reading of the inbox for signals that were missed. One reading runs at a time, and a failed one is
 * repeated.
 */
function createGapReading(context: SignalContext, lease: HeldLease, stopping: AbortSignal) {
  const { clock, sleep, logger } = context;
  const pause = (_reason: unknown, until: number): Promise<void> => sleep(until - clock(), stopping);
  const retry = createRetry(context, { signal: stopping, pause }, READ_ATTEMPTS_MAX);
  let meter = createMeter(context.network, context.prices);
  let readAt = -Infinity;
  const reading = createCoalescingScheduler(async () => {
    await sleep(readAt + GAP_MS_MIN - clock(), stopping);
    if (stopping.aborted) return;
    readAt = clock();
    const { network, usage } = meter;
    try {
      const run = { ...context, network, usage, lease, signal: stopping, metadata: SERVICE_METADATA, runId: undefined };
      await readNewMessages(run, retry);
      meter = createMeter(context.network, context.prices);
    } catch (fault) {
      if (fault instanceof LeaseLost) return;
      logger.warn("a gap in the stream of signals could not be read yet", errorFields(fault));
      reading.ask();
    }
  });
  return reading;
}

/**
 * Records that the stream of signals does not open: at once if the network refuses it, else after several failed
 * attempts. Other faults are only logged.
 */
async function noteFault(context: SignalContext, lease: HeldLease, fault: unknown, attempt: number): Promise<void> {
  if (fault === undefined || fault instanceof LeaseLost) return;
  const isRefusal = fault instanceof SocialError && fault.kind !== "unavailable";
  const isKnown = fault instanceof SocialError || fault instanceof NetworkFault;
  context.logger.warn("the stream of signals ended", { attempt, ...errorFields(fault) });
  if (!isKnown || !(isRefusal || attempt >= ATTEMPTS_NOTED)) return;
  await noteStream(context, lease, { open: false, details: [fault.message] });
}

/**
 * Records a change between an open and a closed stream of signals. If the append fails, this is only logged: the next
 * attempt records the change.
 */
async function noteStream(context: SignalContext, lease: HeldLease, data: { open: boolean; details: string[] }) {
  const decide = (): AppendDecision<never> => {
    const { open, details } = context.projector.state("signals");
    const isSame = open === data.open && details.join("\n") === data.details.join("\n");
    return { events: isSame ? [] : [{ type: "SignalStreamChanged", data }] };
  };
  try {
    await handle(context, STREAMS.account, decide, { metadata: SERVICE_METADATA, lease });
  } catch (fault) {
    context.logger.warn("the state of the stream of signals could not be recorded", errorFields(fault));
  }
}

/**
 * Returns how long to wait before the next attempt, in ms. The network prescribes a minimum, so chance must not shorten
 * it.
 */
function waitMs({ clock }: SignalContext, fault: unknown, attempt: number): number {
  if (!(fault instanceof SocialError)) return Math.min(UNREACHABLE.maxMs, (attempt - 1) * UNREACHABLE.stepMs);
  if (fault.kind === "unavailable") return backoffMs(Math.max(1, attempt), 1, UNAVAILABLE);
  return Math.max((fault.retryAt ?? 0) - clock(), backoffMs(Math.max(1, attempt), 1, REFUSED));
}
