import * as fc from "fast-check";
import { historyCommands } from "./commands.ts";
import {
  authorize,
  CAUSE,
  openHouse,
  RUN_MAX_MS,
  SETTLE_MS,
  type House,
  type Instance,
  type Observer,
} from "./house.ts";
import { Violation, type Attempt, type Books } from "./books.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import type { Logs } from "./logs.ts";
import { personId, setting } from "./setting.ts";
import type { Tally } from "./tally.ts";

/** Commands of a history; more of them find no more, and shrink slower. */
const COMMANDS_MAX = 24;

/** Whatever happens, in whatever order, the rules of the ledger hold, and in the end the log is what the network took. */
export function histories(logs: Logs, tally: Tally) {
  const commands = fc.commands(historyCommands, { maxCommands: COMMANDS_MAX, size: "max" });
  return fc.asyncProperty(setting, commands, async (given, happening) => {
    await using log = await logs.take();
    const house = await openHouse(given, log, observe(tally));
    const ledger = createLedger(house);
    await house.start();
    await fc.asyncModelRun(() => ({ model: ledger, real: house }), happening);
    await settle(house, ledger);
    tally.history(house, ledger.books, [...happening].length);
  });
}

function observe(tally: Tally): Observer {
  return { onFate: (what, point) => tally.fate(what, point) };
}

/** Nothing goes wrong any more; a last process settles what is open, and makes the runs that are left to make. */
async function settle(house: House, ledger: Ledger): Promise<void> {
  const { network, clockwork } = house;
  network.answers.length = network.faults.length = network.inboxFaults.length = 0;
  for (const { process } of house.instances()) process.resume();
  await clockwork.pass(RUN_MAX_MS + 5 * SETTLE_MS);
  await ledger.check();
  for (const { process } of house.instances()) process.die();
  await authorize(house);
  const last = await house.start();
  last.runner.recover({ steal: true }).catch(() => {});
  await clockwork.pass(5 * SETTLE_MS);
  const reason = await runToTheEnd(house, last);
  await ledger.check();
  checkSettled(ledger.books, last);
  if (reason === "completed") checkNobodyForgotten(house, ledger.books);
}

async function runToTheEnd({ clockwork }: House, { runner }: Instance): Promise<string | undefined> {
  let ended: string | undefined;
  const running = (async () => {
    const triggered = await runner.trigger({ dryRun: false, cause: CAUSE });
    ended = triggered.kind === "started" ? (await triggered.done)?.reason : triggered.kind;
  })();
  await clockwork.pass(RUN_MAX_MS + 5 * SETTLE_MS);
  if (ended === undefined) throw new Violation("the last run does not end");
  await running;
  return ended;
}

function checkSettled(books: Books, { projector }: Instance): void {
  if (books.openRun !== undefined) throw new Violation("a run is open in the end");
  for (const attempt of books.attempts.values()) checkAttempt(attempt);
  const { sent, skipped, failed } = projector.state("stats");
  const told = JSON.stringify({ sent, skipped, failed });
  if (told !== JSON.stringify(books.counts)) throw new Violation(`stats ${told} ${JSON.stringify(books.counts)}`);
  for (const [day, places] of books.places) {
    if ((projector.state("quota").days.get(day) ?? 0) !== places) throw new Violation(`quota ${day} ${places}`);
  }
}

/** The network took the message exactly if the log says that it was sent. */
function checkAttempt(attempt: Attempt): void {
  const takenBy = attempt.asks.filter(({ took }) => took?.accepted !== undefined);
  const about = JSON.stringify(attempt);
  if (attempt.state === "open") throw new Violation(`an attempt without an outcome ${about}`);
  if (attempt.state === "in_doubt") throw new Violation(`left in doubt ${about}`);
  if (attempt.state === "sent" && takenBy.length !== 1) throw new Violation(`sent, but not taken once ${about}`);
  if (attempt.state !== "failed" || takenBy.length === 0) return;
  // A process that stood still with its request already made, until another had settled the attempt: no one could know.
  const isLate = takenBy.every(({ took }) => (took?.head ?? 0) >= (attempt.settledAt ?? 0));
  if (!isLate || attempt.reason !== "not_delivered") throw new Violation(`failed, but taken ${about}`);
}

/** The last run came to its end, so everybody who may be written to was. */
function checkNobodyForgotten(house: House, books: Books): void {
  for (const [index, kind] of house.people.entries()) {
    const id = personId(index);
    if (kind !== "open" && kind !== "twice" && kind !== "by_handle") continue;
    const attempted = [...books.attempts.values()].findLast(({ recipientId }) => recipientId === id);
    const isOpen = attempted === undefined || attempted.mayRepeat;
    if (isOpen && !books.suppressed.has(id)) throw new Violation(`forgotten: ${id}`);
  }
}
