import * as fc from "fast-check";
import { HOUR_MS } from "./perform-acts.ts";
import { historyCommands } from "./random-history-commands.ts";
import { authorize, METADATA, openHouse, type House, type Observer } from "./simulated-world.ts";
import { OWN } from "../../harness/in-process/social-network.ts";
import { RUN_MAX_MS, SETTLE_MS, type Instance } from "./instance.ts";
import { Violation, type Attempt, type Books } from "./log-summary.ts";
import { passGap } from "./campaign-sequences.ts";
import { createLedger, type Ledger } from "./check-protocol-rules.ts";
import type { Logs } from "./log-with-copies.ts";
import { homeOf, idOfHandle, personId, setting } from "./initial-state.ts";
import { nextOpening } from "./sending-window-by-wall-clock.ts";
import type { Tally } from "./count-situations-in-histories.ts";

/** Maximum number of commands in a history. Longer histories find no more faults and shrink more slowly. */
const COMMANDS_MAX = 24;

/** Length in ms of the longest day, on which clocks are set back. No time zone in these histories skips a whole day. */
const DAY_MS_MAX = 25 * HOUR_MS;

/**
 * Age up to which the service looks for a message in doubt. It is set shorter than the real limit, because the clocks
 * here differ by some days.
 */
const LOOKED_FOR_MS = 25 * 24 * HOUR_MS;

/**
 * fast-check property: in any order of commands no check of the model fails, and in the end the log agrees with the
 * messages that the network accepted. `inspect` gets the end state of each history.
 */
export function histories(
  logs: Logs,
  tally: Tally,
  inspect?: (house: House) => Promise<void>,
  from: typeof historyCommands = historyCommands,
) {
  const commands = fc.commands(from, { maxCommands: COMMANDS_MAX, size: "max" });
  return fc.asyncProperty(setting, commands, async (given, happening) => {
    await using log = await logs.take();
    const house = await openHouse(given, log, observe(tally));
    const ledger = createLedger(house);
    await house.start();
    await fc.asyncModelRun(() => ({ model: ledger, real: house }), happening);
    await settle(house, ledger);
    tally.history(house, ledger.books, [...happening].length);
    await inspect?.(house);
  });
}

function observe(tally: Tally): Observer {
  return { onFate: (what, point) => tally.fate(what, point) };
}

/** Ends all faults. Then a last process settles the attempts without an outcome and makes runs until one completes. */
async function settle(house: House, ledger: Ledger): Promise<void> {
  const { network, clockwork, witness } = house;
  network.answers.length = network.faults.length = network.inboxFaults.length = 0;
  network.cursors = "onward";
  witness.refuse(0, 0);
  for (const { process } of house.instances()) process.resume();
  await clockwork.pass(RUN_MAX_MS + 5 * SETTLE_MS);
  await ledger.check();
  house.killAll();
  house.setClocksRight();
  // Waits until the time of the log's newest event, which lies in the future if the log's clock was ahead.
  await clockwork.pass(Math.max(0, Date.parse((await house.store.head()).time ?? "") - house.clock()));
  await passGap(house);
  await authorize(house);
  const last = await house.start();
  last.runner.recover({ steal: house.setting.isOwned }).catch(() => {});
  await clockwork.pass(5 * SETTLE_MS);
  let reason = await runInWindows(house, last);
  if (reason === "log_restored") {
    // After a restore, a run writes to no recipient for a day.
    await clockwork.pass(DAY_MS_MAX);
    reason = await runInWindows(house, last);
  }
  await ledger.check();
  checkSettled(ledger.books, last, house);
  if (reason === "completed") checkNobodyForgotten(house, ledger.books);
}

/** Maximum number of runs in `runInWindows`: one for each time zone in which the sending window opens, and one more. */
const RUNS_MAX = 6;

/**
 * Makes runs until one ends for a reason other than the sending window or the time limit, and returns that reason;
 * `completed` if the window cut all of them short. Before each run, waits until the window opens in some zone.
 */
async function runInWindows(house: House, last: Instance): Promise<string | undefined> {
  const { window } = house.setting;
  for (let runs = 1; runs <= RUNS_MAX; runs++) {
    const reason = await runToTheEnd(house, last);
    const isCutShort = reason === "window_closed" || reason === "time_limit";
    if (window === undefined || !isCutShort) return reason;
    const zones = house.people.map((_kind, index) => homeOf(personId(index)) ?? house.timezone);
    const openings = [house.timezone, ...zones].map((zone) => nextOpening(window.text, zone, house.clock()));
    await house.clockwork.pass(Math.min(...openings) - house.clock());
  }
  return "completed";
}

async function runToTheEnd({ clockwork }: House, { runner }: Instance): Promise<string | undefined> {
  let ended: string | undefined;
  const running = (async () => {
    const triggered = await runner.trigger({ dryRun: false, metadata: METADATA });
    ended = triggered.kind === "started" ? (await triggered.done)?.reason : triggered.kind;
  })();
  await clockwork.pass(RUN_MAX_MS + 5 * SETTLE_MS);
  if (ended === undefined) throw new Violation("the last run does not end");
  await running;
  return ended;
}

function checkSettled(books: Books, { projector }: Instance, house: House): void {
  if (books.openRun !== undefined) throw new Violation("a run is open in the end");
  for (const attempt of books.attempts.values()) checkAttempt(books, attempt, house);
  const { sent, skipped, failed } = projector.state("stats");
  const told = JSON.stringify({ sent, skipped, failed });
  if (told !== JSON.stringify(books.counts)) throw new Violation(`stats ${told} ${JSON.stringify(books.counts)}`);
  for (const [day, places] of books.places) {
    if ((projector.state("quota").days.get(day) ?? 0) !== places) throw new Violation(`quota ${day} ${places}`);
  }
}

/** Checks an attempt's outcome: the network accepted its message if and only if the log says that it was sent. */
function checkAttempt(books: Books, attempt: Attempt, house: House): void {
  const { forgotten, witness, clockwork, replaced } = house;
  const takenBy = attempt.asks.filter(({ took }) => took?.accepted !== undefined);
  const about = JSON.stringify(attempt);
  if (attempt.state === "open") throw new Violation(`an attempt without an outcome ${about}`);
  // In the end the first account is linked again. A lookup finds only messages of this account, and none that the
  // second account sent.
  const isShown =
    attempt.accountId === OWN.id && clockwork.now() - witness.appendedAt(attempt.position) < LOOKED_FOR_MS;
  if (attempt.state === "in_doubt") {
    const isFound = isShown && !forgotten.has(attempt.recipientId) && !hasLostMessage(books, attempt, house);
    if (isFound) throw new Violation(`left in doubt ${about}`);
    return;
  }
  // After a restore, the message that settles this attempt may be that of another attempt, which only the lost log had.
  if (attempt.state === "sent" && takenBy.length !== 1 && replaced.length === 0)
    throw new Violation(`sent, but not taken once ${about}`);
  if (attempt.state !== "failed" || takenBy.length === 0) return;
  // An attempt that counts as not delivered may have a message only if its process was paused while another one settled
  // it. The paused process could not know of that when it made the request.
  const isLate = takenBy.every(({ took }) => (took?.head ?? 0) >= (attempt.settledAt ?? 0));
  if (!isLate || attempt.reason !== "not_delivered") throw new Violation(`failed, but taken ${about}`);
}

/**
 * True if the recipient has a message that only a lost log knew. A lookup then finds a message of ours with another
 * text, and leaves the attempt to an operator.
 */
function hasLostMessage({ messageIds }: Books, { recipientId, asks }: Attempt, { network, replaced }: House): boolean {
  const own = new Set(asks.flatMap(({ took }) => took?.accepted?.id ?? []));
  const isLost = ({ id }: { readonly id: string }): boolean => !messageIds.has(id) && !own.has(id);
  return replaced.length > 0 && network.accepted.some((one) => one.recipientId === recipientId && isLost(one));
}

/** Checks that each recipient who may be written to got a message, after the last run completed. */
function checkNobodyForgotten(house: House, books: Books): void {
  for (const [index, kind] of house.people.entries()) {
    const id = personId(index);
    if (kind !== "open" && kind !== "twice" && kind !== "by_handle") continue;
    if (!books.listed.has(id) || books.found.has(id)) continue;
    // A person who ever took over another person's handle may rightly get nothing, because the previous holder may have
    // opted out under that handle.
    if (house.everHeirs.has(id)) continue;
    if (books.held.has(id)) continue;
    // The log may know this person only by a handle, without an id. If a suppression list holds the hash of that
    // handle, it is right that the person got no message.
    if ([...books.hashedHandles].some((handle) => idOfHandle(handle) === id)) continue;
    // A restored log may know this recipient only by a handle that now belongs to another person, so no run can reach
    // the recipient.
    if (kind === "by_handle" && house.replaced.length > 0 && house.heirs.has(`user_${id}`)) continue;
    const attempted = [...books.attempts.values()].findLast(
      ({ recipientId, campaign }) => recipientId === id && campaign === "default",
    );
    const isOpen = attempted === undefined || attempted.mayRepeat;
    if (isOpen && !books.suppressed.has(id)) throw new Violation(`forgotten: ${id}`);
  }
}
