import { join } from "node:path";
import { openSqliteStore } from "eventstore-lite";
import { atMost, compare, interleave, outputOf, roundsOf, type Bench } from "eventstore-lite/bench";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { decideTurn, type OutreachRules, type OutreachState } from "../../src/outreach/decide.ts";
import { rulesForCampaign } from "../../src/outreach/run-rules.ts";
import { foldLog } from "../harness/fold-log.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { costOf, describeCosts, type Cost } from "./processor-cost.ts";
import { campaignName } from "./generate-campaign-events.ts";
import { mixedLog } from "./open-mixed-log.ts";
import { toPerson } from "./generate-outreach-events.ts";

const EVENTS = 250_000;
const EVENTS_QUICK = 30_000;
const PEOPLE = 100_000;
const PEOPLE_QUICK = 12_000;

/** Number of campaigns beside `default`. */
const CAMPAIGNS = 20;

/** Number of decisions to measure. They are about the last recipients, who got no message yet. */
const DECIDED = 10_000;

const STATES = ["account", "campaigns", "contacts", "links", "quota", "run"] as const;

/**
 * Measures what campaigns cost an installation: the decision on one recipient, the memory for a recipient, and a
 * replay. Each is compared with a log without campaigns.
 */
export const campaigns: Bench = async (options) => {
  const events = options.quick ? EVENTS_QUICK : (options.events ?? EVENTS);
  const people = options.quick ? PEOPLE_QUICK : PEOPLE;
  const without = await mixedLog(options.logs, events, people, "spread");
  const many = await mixedLog(options.logs, events, people, "spread", CAMPAIGNS);
  const [none, all] = [await readStates(without), await readStates(many)];
  const first = rulesForCampaign(RULES, all.campaigns, campaignName(0));
  const third = rulesForCampaign(RULES, all.campaigns, campaignName(2));
  const decided = await interleave(roundsOf(options) * 4, {
    none: () => decideEach(none, RULES, people),
    all: () => decideEach(all, RULES, people),
    first: () => decideEach(all, first, people),
    third: () => decideEach(all, third, people),
  });
  const folded = await interleave(roundsOf(options), {
    none: () => runProgram<Fold>("measure-fold-time-and-memory.ts", without),
    all: () => runProgram<Fold>("measure-fold-time-and-memory.ts", many),
  });
  const kept = await interleave(1, {
    none: () => runProgram<Kept>("measure-memory-per-contact.ts", without),
    all: () => runProgram<Kept>("measure-memory-per-contact.ts", many),
  });
  options.note(
    describeCosts({ "default, no campaigns": decided.none, default: decided.all, "a campaign": decided.third }),
  );
  const usOf = (costs: readonly Cost[]) => costs.map(({ mainUs }) => mainUs);
  const row = (what: string, costs: readonly Cost[], bar?: ReturnType<typeof atMost>) =>
    compare(`campaigns, a decision, ${what}; without campaigns`, "µs", usOf(costs), usOf(decided.none), bar);
  const fold = (values: readonly Fold[]) => values.map(({ microsecondsPerEvent }) => microsecondsPerEvent);
  const bytes = (values: readonly Kept[]) => values.map(({ bytesEach }) => bytesEach);
  return [
    row(`default beside ${CAMPAIGNS} campaigns`, decided.all, atMost(1.1)),
    row("a campaign with conditions on fields", decided.first),
    row("a campaign for the list", decided.third, atMost(1.5)),
    compare("campaigns, an event replayed; without campaigns", "µs", fold(folded.all), fold(folded.none), atMost(1.2)),
    compare("campaigns, memory of a recipient; without campaigns", "B", bytes(kept.all), bytes(kept.none), atMost(1.1)),
  ];
};

interface Fold {
  readonly microsecondsPerEvent: number;
}

interface Kept {
  readonly bytesEach: number;
}

async function readStates(file: string): Promise<Omit<OutreachState, "ms">> {
  await using store = await openSqliteStore<Event>({ file, codec });
  return (await foldLog(store, STATES)).states;
}

/**
 * Decides about recipients who get a message. Throws if one of them gets none, because such a decision takes less time.
 */
function decideEach(states: Omit<OutreachState, "ms">, rules: OutreachRules, people: number): Promise<Cost> {
  const ms = Date.now();
  const now = { ms, clockMs: ms, day: "2027-05-03", timezone: "UTC" };
  const state = { ...states, ms };
  const turn = { attempt_id: "a", run_id: "r", accountId: states.account.user?.id, now };
  const isEach = rules.campaign !== campaignName(0);
  return costOf(DECIDED, () => {
    for (let number = people - DECIDED; number < people; number++) {
      const decided = decideTurn(state, rules, {
        ...turn,
        user: { ...toPerson(number), name: `Name${number}`, receivesOurDm: true, protected: false },
      });
      const isWritten = "events" in decided && decided.events.some(({ type }) => type === "DirectMessageAttempted");
      if (isEach && !isWritten) throw new Error(`recipient ${number} would get no message: ${JSON.stringify(decided)}`);
    }
  });
}

/** Runs a program of this folder in a separate process, so that its memory is not that of an earlier measurement. */
async function runProgram<Result>(program: string, file: string): Promise<Result> {
  return JSON.parse(await outputOf([process.execPath, join(import.meta.dirname, program), file])) as Result;
}
