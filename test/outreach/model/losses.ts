import * as fc from "fast-check";
import { RUN_MAX_MS, type Instance } from "./instance.ts";
import { HOUR_MS, jumpToMidnight, MINUTE_MS, start, trigger, unattended } from "./acts.ts";
import { LATE_MS_MAX } from "./arbitraries.ts";
import { refuseServed } from "../../../src/log/instance-heartbeats.ts";
import { ServiceError } from "../../../src/platform/service-error.ts";
import { violated } from "./books.ts";
import { METADATA, type Copy, type House } from "./house.ts";
import type { Ledger } from "./ledger.ts";
import { forget, rename } from "./names.ts";
import { personId } from "./setting.ts";

/** How a run is lost, and what it is worth to know of it. */
interface Loss {
  /** So much of it happens before. */
  readonly steps: number;
  readonly what: "a retry" | "a person is forgotten" | "a late message over midnight" | "a run";
  readonly who: number;
  readonly after: "nothing" | "a day" | "a month";
  readonly by: Copy;
}

/** By our restore, or by other means. */
export const backup = fc.constantFrom<Copy[]>("backup", "files");

export const loss: fc.Arbitrary<Loss> = fc.record({
  steps: fc.nat(80),
  what: fc.constantFrom("a run", "a retry", "a person is forgotten", "a late message over midnight"),
  who: fc.nat(9),
  after: fc.constantFrom("nothing", "a day", "a month"),
  by: backup,
});

/** A backup is made, a run goes on for some steps, and then there is only the backup. */
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

/** A message is not found, so that an operator allows each such recipient another one. */
async function allowRetries(house: House, ledger: Ledger): Promise<void> {
  house.network.answers.unshift({ doubt: "lost" });
  await runAfter(house, 0);
  await ledger.check();
  for (const [id, { reason }] of ledger.books.latest) {
    const data = { recipient: { id } };
    if (reason === "not_delivered") await house.append([{ type: "RecipientRetryAllowed", data }]);
  }
}

/** The log is made of an export: its newest `back` appends came later. */
export async function importExport(house: House, back: number, ledger: Ledger): Promise<void> {
  await ledger.replaceLog({ exportOf: house.witness.headBefore(back, house.begun) });
  await start(house);
}

/** What the instances do when a copy is to be put in the place of a server's log. */
interface Beside {
  readonly steps: number;
  /** All of them stand still meanwhile, and go on once it is there. */
  readonly isPaused: boolean;
  readonly by: Copy;
}

export const beside: fc.Arbitrary<Beside> = fc.record({
  steps: fc.nat(80),
  isPaused: fc.constantFrom(true, true, false),
  by: backup,
});

/** Not beside an instance that lives; one that stood still for as long as it takes to find it dead ends without another word. */
export async function restoreBeside(house: House, { steps, isPaused, by }: Beside, ledger: Ledger): Promise<void> {
  const { clockwork, besides } = house;
  // A log in a file is replaced by nothing: it has to be moved away, and its owner with it.
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
