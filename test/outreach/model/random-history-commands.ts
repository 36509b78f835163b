import * as fc from "fast-check";
import {
  chosen,
  faultOf,
  HOUR_MS,
  INSTANCES_MAX,
  jumpToEdge,
  jumpToMidnight,
  linkSecond,
  listening,
  MINUTE_MS,
  named,
  naming,
  optOutOnPage,
  overtake,
  start,
  suppression,
  trigger,
  triggerNamed,
  type Naming,
  unattended,
  writeToUs,
} from "./perform-acts.ts";
import type { Cursors } from "../../harness/in-process/social-network.ts";
import { backup, beside, importExport, loseRun, loss, restoreBeside } from "./log-losses.ts";
import { forget, handOver, rename } from "./erase-and-rename.ts";
import { answer, fate, LATE_MS_MAX, lateMs, readFault } from "./fault-arbitraries.ts";
import { answerWhileWaiting, campaign, chain, runChain } from "./campaign-sequences.ts";
import { authorize, METADATA, type House } from "./simulated-world.ts";
import { FAILURE_TRIES_MIN } from "../../../src/outreach/quota-and-reasons-to-end-run.ts";
import { RUN_MAX_MS } from "./instance.ts";
import type { Ledger } from "./check-protocol-rules.ts";
import {
  hold,
  releaseHeld,
  suppressByHand,
  suppressByHash,
  suppressThenRename,
} from "./operator-suppressions-and-holds.ts";
import { KINDS, personId, selection, ZONES } from "./initial-state.ts";

export type HistoryCommand = fc.AsyncCommand<Ledger, House>;

/** Pause after a command: up to `steps` steps of the processes, or a wait of `wait` ms. */
type After = { readonly steps: number } | { readonly wait: number };

const after: fc.Arbitrary<After> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ steps: fc.integer({ min: 0, max: 40 }) }) },
  { weight: 3, arbitrary: fc.record({ wait: fc.constantFrom(0, 1_000, 11_000, 31_000, 2 * MINUTE_MS) }) },
  { weight: 1, arbitrary: fc.record({ wait: fc.constantFrom(6 * MINUTE_MS, 20 * MINUTE_MS) }) },
);

/** Maximum time in ms that the steps after a command may take, longer than the time between two messages. */
const STEPS_WITHIN_MS = MINUTE_MS;

/** Creates a command that is always possible, because it picks its target among the things that exist. */
function command<Args>(
  name: string,
  args: fc.Arbitrary<Args>,
  act: (house: House, args: Args, ledger: Ledger) => unknown,
): fc.Arbitrary<HistoryCommand> {
  return fc.record({ args, after }).map(({ args: given, after: next }) => ({
    check: () => true,
    async run(ledger, house) {
      await act(house, given, ledger);
      if ("steps" in next) await house.clockwork.steps(next.steps, STEPS_WITHIN_MS);
      else await house.clockwork.pass(next.wait);
      await ledger.check();
    },
    toString: () => `${name} ${JSON.stringify(given)} then ${JSON.stringify(next)}`,
  }));
}

const which = fc.nat(INSTANCES_MAX - 1);
const who = fc.nat(9);

/** fast-check generator of requests for named recipients. Most have no limits of their own, so that they may join. */
const request: fc.Arbitrary<Naming> = fc.record({
  which,
  people: fc.array(who, { minLength: 1, maxLength: 4 }),
  byId: fc.boolean(),
  dryRun: fc.constantFrom(false, false, false, true),
  selection: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: selection }),
});

/** Maximum number of people who refuse messages: so few that the account itself does not count as restricted. */
const FORBIDDING_MAX = 2;

/** Number of messages that arrive at once: more than one read of the inbox returns. */
const FLOOD = 12;

/** fast-check generator of how far one machine's clock moves, in ms: by less and by more than the allowed skew. */
const apart = fc.constantFrom(
  -26 * HOUR_MS,
  -HOUR_MS,
  -4 * MINUTE_MS,
  4 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  26 * HOUR_MS,
);

const jumps = fc.constantFrom(-25 * HOUR_MS, -HOUR_MS, -40_000, -1_000, 1_000, 25_000, 40_000, 4 * MINUTE_MS, HOUR_MS);

/**
 * fast-check generators of the commands about campaigns. A random test of the campaign rules
 * (search-random-histories.ts) generates only these commands.
 */
export const campaignCommands: fc.Arbitrary<HistoryCommand>[] = [
  command("runs of campaigns", chain, runChain),
  command("runs of campaigns", chain, runChain),
  command("a reply while a message waits", fc.record({ which, name: campaign }), answerWhileWaiting),
  command(
    "withdraw a consent",
    fc.record({ who, name: fc.constantFrom("first", "second") }),
    (house, { who: at, name }) =>
      house.append([
        { type: "ConsentRecorded", data: { recipient: named(house, at, true), basis: "none", consent_for: name } },
      ]),
  ),
  command("end a campaign", fc.constantFrom("spring", "first"), (house, name) =>
    house.append([{ type: "CampaignEnded", data: { name } }]),
  ),
  command(
    "named join a run of a campaign",
    fc.record({ which, first: campaign, other: campaign, request }),
    async (house, { which: one, first, other, request: asked }) => {
      house.network.answers.unshift({ waitMs: MINUTE_MS });
      trigger(await listening(house, one), false, first === undefined ? {} : { campaign: first });
      await house.clockwork.steps(30, STEPS_WITHIN_MS);
      const selection = other === undefined ? {} : { campaign: other };
      await triggerNamed(house, { ...asked, dryRun: false, selection });
    },
  ),
];

/** fast-check generators of all commands, in the frequencies that find the most defects. */
export const historyCommands: fc.Arbitrary<HistoryCommand>[] = [
  command("start", fc.constant(null), async (house) => {
    if (house.instances().length < INSTANCES_MAX) await start(house);
  }),
  command("trigger", fc.record({ which, dryRun: fc.boolean() }), async (house, given) => {
    trigger(await listening(house, given.which), given.dryRun);
  }),
  command("trigger at all", fc.boolean(), async (house, dryRun) => {
    for (const index of house.instances().keys()) trigger(await listening(house, index), dryRun);
  }),
  command(
    "trigger for some",
    fc.record({
      which,
      dryRun: fc.constantFrom(false, false, true),
      selection,
      name: campaign,
      waitMs: fc.constantFrom(0, MINUTE_MS),
    }),
    async (house, { which: one, dryRun, selection: asked, name, waitMs }) => {
      trigger(await listening(house, one), dryRun, { ...asked, ...(name !== undefined && { campaign: name }) });
      await house.clockwork.pass(waitMs);
    },
  ),
  command("trigger for named", request, triggerNamed),
  ...campaignCommands,
  command(
    "named join a run",
    fc.record({ which, waitMs: fc.constantFrom(0, MINUTE_MS), request }),
    async (house, given) => {
      if (given.waitMs > 0) house.network.answers.unshift({ waitMs: given.waitMs });
      trigger(await listening(house, given.which), false);
      await house.clockwork.steps(30, STEPS_WITHIN_MS);
      await triggerNamed(house, given.request);
    },
  ),
  command("trigger, then", fc.record({ which, fate }), async (house, given) => {
    const instance = await listening(house, given.which);
    instance.process.meet(given.fate);
    trigger(instance, false);
  }),
  command("trigger, then", fate, async (house, given) => {
    const instance = await listening(house, 0);
    instance.process.meet(given);
    trigger(instance, false);
  }),
  command(
    "overtake",
    fc.record({
      what: fc.constantFrom("pause", "pause", "die"),
      calls: fc.nat(40),
      when: fc.constantFrom("before", "behind"),
      wait: fc.constantFrom(MINUTE_MS, 4 * MINUTE_MS),
    }),
    overtake,
  ),
  command("crash", which, (house, given) => chosen(house, given)?.process.die()),
  command("meet", fc.record({ which, fate }), (house, given) => chosen(house, given.which)?.process.meet(given.fate)),
  command("pause", which, (house, given) => chosen(house, given)?.process.pause()),
  command("resume", fc.constant(null), (house) => {
    for (const { process } of house.instances()) process.resume();
  }),
  command("answers", fc.array(answer, { minLength: 1, maxLength: 4 }), ({ network }, given) =>
    network.answers.push(...given),
  ),
  command("read faults", fc.array(readFault, { minLength: 1, maxLength: 3 }), (house, given) =>
    house.network.faults.push(...given.map((fault) => faultOf(fault, house))),
  ),
  command("inbox faults", fc.array(readFault, { minLength: 1, maxLength: 2 }), (house, given) =>
    house.network.inboxFaults.push(...given.map((fault) => faultOf(fault, house))),
  ),
  command("suppress", fc.record({ who, byId: fc.boolean() }), suppressByHand),
  command(
    "suppress by hash",
    fc.record({ who, byId: fc.constantFrom(false, false, true), isImported: fc.boolean() }),
    suppressByHash,
  ),
  command(
    "suppress by hash, then rename",
    fc.record({
      who,
      isImported: fc.boolean(),
      which,
      dryRun: fc.boolean(),
      writes: fc.constantFrom("before", "after", "never"),
    }),
    suppressThenRename,
  ),
  command("suppress at the next intent", fc.boolean(), ({ witness, append, network }, byId) => {
    witness.ambush((id) => append([suppression(naming(network, id, byId))]));
  }),
  command("suppress who waits", which, async (house, given) => {
    house.network.answers.unshift({ waitMs: MINUTE_MS });
    trigger(await listening(house, given), false);
    await house.clockwork.pass(MINUTE_MS / 2);
    const id = house.network.asked.at(-1);
    if (id !== undefined) await house.append([suppression({ id })]);
  }),
  command("opt out on the page", fc.record({ who, which }), (house, given) =>
    optOutOnPage(house, personId(given.who % house.people.length), given.which),
  ),
  command("who waits opts out on the page", fc.record({ which, other: which }), async (house, given) => {
    house.network.answers.unshift({ waitMs: MINUTE_MS / 6 });
    trigger(await listening(house, given.which), false);
    await house.clockwork.steps(30, MINUTE_MS);
    const id = house.network.asked.at(-1);
    if (id !== undefined) await optOutOnPage(house, id, given.other);
  }),
  command("retry", fc.record({ who, byId: fc.boolean(), campaign: fc.option(campaign) }), (house, given) => {
    const ofOne = given.campaign === null ? {} : { campaign: given.campaign ?? "default" };
    const data = { recipient: named(house, given.who, given.byId), ...ofOne };
    return house.append([{ type: "RecipientRetryAllowed", data }]);
  }),
  command(
    "receive",
    fc.record({
      who,
      text: fc.constantFrom("STOP", "stop", "hello", "don't stop"),
      lateMs,
    }),
    (house, given) => {
      writeToUs(house, given.who, given);
    },
  ),
  command("release", who, (house, given) => releaseHeld(house, personId(given % house.people.length))),
  command("hold at the next intent", fc.constant(null), ({ witness, append, network, clockwork }) => {
    witness.ambush((id) => append([hold(network, id, clockwork.now())]));
  }),
  command("hold who waits", which, async (house, given) => {
    house.network.answers.unshift({ waitMs: MINUTE_MS });
    trigger(await listening(house, given), false);
    await house.clockwork.pass(MINUTE_MS / 2);
    const id = house.network.asked.at(-1);
    if (id !== undefined) await house.append([hold(house.network, id, house.clockwork.now())]);
  }),
  command("flood", who, (house, given) => {
    for (let nth = 0; nth < FLOOD; nth++) writeToUs(house, given, { text: "hello", lateMs: 0 });
  }),
  command("import", fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 3 }), (house, given) =>
    house.list(given),
  ),
  command("late wish", fc.record({ who, which }), async (house, given) => {
    writeToUs(house, given.who, { text: "stop", lateMs: LATE_MS_MAX });
    await house.clockwork.pass(1_000);
    writeToUs(house, given.who + 1, { text: "hello", lateMs: 0 });
    trigger(await listening(house, given.which), true);
    await house.clockwork.pass(MINUTE_MS);
  }),
  command("wait over midnight", which, async (house, given) => {
    jumpToMidnight(house, { beforeMs: 30_000, back: false });
    house.network.answers.unshift({ waitMs: MINUTE_MS });
    trigger(await listening(house, given), false);
  }),
  command(
    "wait over an edge of the window",
    fc.record({
      which,
      home: fc.boolean(),
      beforeMs: fc.constantFrom(1_000, 30_000),
      isLimited: fc.boolean(),
      selection: fc.oneof(fc.constant({}), selection),
    }),
    async (house, given) => {
      jumpToEdge(house, given);
      // A 429 makes the message wait with its intent recorded.
      if (given.isLimited) house.network.answers.unshift({ waitMs: MINUTE_MS });
      trigger(await listening(house, given.which), false, given.selection);
      await house.clockwork.pass(4 * MINUTE_MS);
    },
  ),
  command("one ahead at an edge of the window", fc.record({ which, home: fc.boolean() }), async (house, given) => {
    jumpToEdge(house, { ...given, beforeMs: 2 * MINUTE_MS });
    (await listening(house, given.which)).moveClock(3 * MINUTE_MS);
    for (const index of house.instances().keys()) {
      trigger(await listening(house, index), false);
      await house.clockwork.pass(MINUTE_MS / 2);
    }
  }),
  command("every other message fails", which, async (house, given) => {
    await house.list(Array.from({ length: FAILURE_TRIES_MIN + 2 }, () => "open" as const));
    house.network.answers.length = 0;
    for (let nth = 0; nth < FAILURE_TRIES_MIN; nth++) {
      house.network.answers.push(nth % 2 === 0 ? "recipient_closed" : undefined);
    }
    trigger(await listening(house, given), false);
    await house.clockwork.pass(RUN_MAX_MS);
  }),
  command("reconcile a run", fc.record({ which, steps: fc.nat(40) }), async (house, given) => {
    const { runner } = await listening(house, given.which);
    unattended(runner.trigger({ dryRun: false, metadata: METADATA }));
    await house.clockwork.steps(given.steps, STEPS_WITHIN_MS);
    unattended(runner.reconcile());
  }),
  command("reconcile", which, async (house, given) => {
    const { runner } = await listening(house, given);
    unattended(runner.reconcile());
  }),
  command("stop", which, (house, given) => {
    const instance = chosen(house, given);
    if (instance?.process.isPaused() === false) unattended(instance.runner[Symbol.asyncDispose]());
  }),
  command("stop the run", fc.record({ which, isWaiting: fc.boolean() }), async (house, given) => {
    if (given.isWaiting) {
      house.network.answers.unshift({ waitMs: 5 * MINUTE_MS });
      trigger(await listening(house, given.which), false);
      await house.clockwork.pass(MINUTE_MS);
    }
    unattended((await listening(house, given.which)).requestStop(METADATA));
  }),
  command("jump", jumps, (house, given) => {
    house.jump(given);
  }),
  command("jump of one", fc.record({ which, ms: apart }), (house, given) => {
    chosen(house, given.which)?.moveClock(given.ms);
  }),
  command("jump of the server", apart, (house, given) => house.jumpOfServer(given)),
  command("set the clocks right", fc.constant(null), (house) => house.setClocksRight()),
  command(
    "jump at the next intent",
    fc.record({ which, ms: apart, isServer: fc.boolean() }),
    async (house, { ms, ...given }) => {
      const instance = await listening(house, given.which);
      let isOver = false;
      house.witness.ambush(async () => {
        if (isOver) return;
        if (given.isServer) house.jumpOfServer(ms);
        else instance.moveClock(ms);
      });
      trigger(instance, false);
      await house.clockwork.pass(MINUTE_MS);
      // Disarms the clock jump that the next intent would set off. If this run recorded no intent, a later run's intent
      // must not set it off.
      isOver = true;
      house.setClocksRight();
    },
  ),
  command(
    "one ahead over midnight",
    fc.record({ which, ms: fc.constantFrom(3 * MINUTE_MS, HOUR_MS) }),
    async (house, given) => {
      jumpToMidnight(house, { beforeMs: 2 * MINUTE_MS, back: false });
      (await listening(house, given.which)).moveClock(given.ms);
      for (const index of house.instances().keys()) {
        trigger(await listening(house, index), false);
        await house.clockwork.pass(MINUTE_MS / 2);
      }
    },
  ),
  command(
    "jump to midnight",
    fc.record({ beforeMs: fc.constantFrom(1_000, 30_000), back: fc.boolean() }),
    jumpToMidnight,
  ),
  command("back up", fc.constant(null), ({ backUp }) => backUp()),
  command("restore", backup, async (house, by, ledger) => {
    await ledger.replaceLog(by);
    await start(house);
  }),
  command("lose a run", loss, loseRun),
  command("restore beside the living", beside, restoreBeside),
  // This command is listed twice, so that it is drawn more often: half of all histories have a log in a file, where it
  // does nothing.
  command("restore beside the living", beside, restoreBeside),
  command("import an export", fc.nat(12), importExport),
  command("a day passes", fc.constantFrom(25 * HOUR_MS, 25 * HOUR_MS, 25 * HOUR_MS, 31 * 24 * HOUR_MS), (house, ms) =>
    house.clockwork.pass(ms),
  ),
  command("forget", who, (house, given) => forget(house, personId(given % house.people.length))),
  command("forget at the next intent", fc.constant(null), (house) => {
    house.witness.ambush((id) => forget(house, id));
  }),
  command("rename", fc.record({ who, list: fc.boolean() }), rename),
  command("hand over", fc.record({ who, list: fc.boolean(), isForgotten: fc.boolean() }), handOver),
  command("move to another zone", fc.constantFrom(...ZONES), async (house, zone) => {
    house.killAll();
    house.timezone = zone;
    house.timezones.add(zone);
    await start(house);
  }),
  command(
    "refuse writes",
    fc.record({ writes: fc.integer({ min: 1, max: 6 }), after: fc.nat(15), which }),
    async (house, given) => {
      house.witness.refuse(given.writes, given.after);
      trigger(await listening(house, given.which), false);
    },
  ),
  command("one fault", fc.record({ which, inbox: fc.boolean() }), async (house, given) => {
    const faults = given.inbox ? house.network.inboxFaults : house.network.faults;
    faults.unshift(faultOf("unavailable", house));
    trigger(await listening(house, given.which), false);
  }),
  command("forbid", who, ({ network, people }, given) => {
    if (network.forbidding.size < FORBIDDING_MAX) network.forbidding.add(personId(given % people.length));
  }),
  command("lead astray", fc.constantFrom<Cursors[]>("onward", "same", "around", "empty"), ({ network }, given) => {
    network.cursors = given;
  }),
  command("expire the token", fc.constant(null), ({ grant }) => {
    grant.expire();
  }),
  command("revoke the grant", fc.constant(null), ({ grant }) => {
    grant.revoke();
  }),
  command("authorize", fc.constant(null), (house) => authorize(house)),
  command("link a second account", fc.record({ which, isLinkedBack: fc.boolean() }), linkSecond),
];
