import * as fc from "fast-check";
import { RUN_MAX_MS, type Instance } from "./instance.ts";
import { HOUR_MS, jumpToMidnight, MINUTE_MS, start, trigger, unattended } from "./perform-acts.ts";
import { LATE_MS_MAX } from "./fault-arbitraries.ts";
import { refuseServed } from "../../../src/log/instance-heartbeats.ts";
import { ServiceError } from "../../../src/platform/service-error.ts";
import { violated } from "./log-summary.ts";
import { METADATA, type Copy, type House } from "./simulated-world.ts";
import type { Ledger } from "./check-protocol-rules.ts";
import { forget, rename } from "./erase-and-rename.ts";
import { personId } from "./initial-state.ts";

/** Circumstances in which the log is lost during a run. */
interface Loss {
  /** Number of steps that the processes take between the start of the run and the loss of the log. */
  readonly steps: number;
  readonly what: "a retry" | "a person is forgotten" | "a late message over midnight" | "a run";
  readonly who: number;
  readonly after: "nothing" | "a day" | "a month";
  readonly by: Copy;
}

/** fast-check generator of the copy that replaces the log: our own backup, or files that another program copied. */
export const backup = fc.constantFrom<Copy[]>("backup", "files");

export const loss: fc.Arbitrary<Loss> = fc.record({
  steps: fc.nat(80),
  what: fc.constantFrom("a run", "a retry", "a person is forgotten", "a late message over midnight"),
  who: fc.nat(9),
  after: fc.constantFrom("nothing", "a day", "a month"),
  by: backup,
});

/** Simulates a loss of the log: makes a backup, lets a run take some steps, then replaces the log by that backup. */
export async function loseRun(house: House, { steps, what, who, after, by }: Loss, ledger: Ledger): Promise<void> {
  const { clockwork, network, backUp } = house;
  if (what === "a retry") await allowRetries(house, ledger);
  if (what === "a late message over midnight") {
    jumpToMidnight(house, { beforeMs: MINUTE_MS / 2, back: false });
    network.answers.unshift({ doubt: "delivered", lateMs: LATE_MS_MAX });
  }
  await backUp();
  if (what === "a person is forgotten") await forget(house, personId(who % house.people.length));
  trigger(await awake(house), false);
  await clockwork.steps(steps, MINUTE_MS / 4);
  await ledger.replaceLog(by);
  trigger(await start(house), false);
  if (what === "a person is forgotten") await rename(house, { who, list: true });
  if (what === "a late message over midnight") {
    await clockwork.pass(MINUTE_MS / 2);
    trigger(await awake(house), false);
  }
  if (after === "nothing") return;
  await runAfter(house, 25 * HOUR_MS);
  if (after === "a month") await runAfter(house, 31 * 24 * HOUR_MS);
}

async function runAfter(house: House, ms: number): Promise<void> {
  await house.clockwork.pass(ms);
  trigger(await awake(house), false);
  await house.clockwork.pass(RUN_MAX_MS);
}

async function awake(house: House): Promise<Instance> {
  return house.instances().find(({ process }) => !process.isPaused()) ?? (await start(house));
}

/**
 * Makes the network lose a message without telling the run. Then an operator allows another message to each recipient
 * whose message counts as not delivered.
 */
async function allowRetries(house: House, ledger: Ledger): Promise<void> {
  house.network.answers.unshift({ doubt: "lost" });
  await runAfter(house, 0);
  await ledger.check();
  for (const [id, { reason }] of ledger.books.latest) {
    const data = { recipient: { id } };
    if (reason === "not_delivered") await house.append([{ type: "RecipientRetryAllowed", data }]);
  }
}

/** Replaces the log by the import of an export that lacks its newest `back` appends. */
export async function importExport(house: House, back: number, ledger: Ledger): Promise<void> {
  await ledger.replaceLog({ exportOf: house.witness.headBefore(back, house.begun) });
  await start(house);
}

/** Circumstances in which a server's log is replaced by a copy while processes use it. */
interface Beside {
  readonly steps: number;
  /**
   * True to pause all processes of the service before the server's log is replaced by a copy, and to resume them
   * afterwards.
   */
  readonly isPaused: boolean;
  readonly by: Copy;
}

export const beside: fc.Arbitrary<Beside> = fc.record({
  steps: fc.nat(80),
  isPaused: fc.constantFrom(true, true, false),
  by: backup,
});

/**
 * Replaces a server's log while processes use it. Checks that this is refused if one of them lives, and that a paused
 * process which counts as dead ends when it resumes.
 */
export async function restoreBeside(house: House, { steps, isPaused, by }: Beside, ledger: Ledger): Promise<void> {
  const { clockwork, besides } = house;
  // A log in a file cannot be replaced in place: the operator moves it away, and its owner ends. So there is nothing to
  // check.
  if (house.setting.isOwned) return;
  await house.backUp();
  trigger(await awake(house), false);
  await clockwork.steps(steps, MINUTE_MS / 4);
  if (isPaused) for (const { process } of house.instances()) process.pause();
  try {
    await refuseServed(house.log, house.heartbeatTime);
  } catch (fault) {
    if (!(fault instanceof ServiceError)) throw fault;
    besides.refused += 1;
    return;
  }
  const stale = house.instances();
  if (stale.some(({ process }) => !process.isPaused())) violated("a log was replaced under a living instance", { by });
  await ledger.replaceLog(by, true);
  for (const { process, runner } of stale) {
    process.resume();
    unattended(runner.trigger({ dryRun: false, metadata: METADATA }));
  }
  await clockwork.pass(1_000);
  for (const { look } of stale) await look();
  if (stale.some(({ process }) => !process.isDead()))
    violated("an instance of a log that was replaced lives on", { by });
  besides.ended += stale.length;
  trigger(await start(house), false);
}
