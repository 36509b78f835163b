// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { createWhatIf, type WhatIf } from "../../../src/outreach/what-if/decide-recorded-runs-again.ts";
import type { RuleChanges, RulesInForce } from "../../../src/outreach/run-rules.ts";
import { RULES } from "../../harness/in-process/simulated-outreach-processes.ts";
import { GAP_DAYS } from "../model/campaign-rules.ts";
import { historyCommands } from "../model/random-history-commands.ts";
import { histories } from "../model/run-random-histories.ts";
import type { House } from "../model/simulated-world.ts";
import { RUN_MAX_MS, TEMPLATE } from "../model/instance.ts";
import { createLogs } from "../model/log-with-copies.ts";
import { createTally } from "../model/count-situations-in-histories.ts";
import { isWhole } from "../../harness/case-count.ts";

/** Number of random histories: all with the fault tests, a part of them with the ordinary tests. */
const HISTORIES = isWhole ? 200 : 20;

/** Rules of outreach that stay the same throughout a history. */
function fixedRules({ setting }: House) {
  const { dailyLimit, stopAfterFailures, window, followers } = setting;
  return { dailyLimit, stopAfterFailures, window, requireConsent: !followers, template: TEMPLATE, gapDays: GAP_DAYS };
}

async function ask(house: House, changes: RuleChanges): Promise<WhatIf> {
  const today: RulesInForce = { ...fixedRules(house), timezone: house.timezone };
  const sources = house.setting.followers
    ? (["list", "inbound", "followers"] as const)
    : (["list", "inbound"] as const);
  const identities = { hashes: RULES.hashes, isForgotten: house.log.keyring.isForgotten };
  const asked = { changes, isBot: undefined, stopWords: undefined, today, sources, runMaxMs: RUN_MAX_MS };
  const whatIf = createWhatIf({ ...asked, identities, limit: 3 });
  for await (const batch of house.store.readFolded()) for (const event of batch) whatIf.take(event);
  return whatIf.finish(house.clock());
}

function isEmpty({ days, recipients, unknown, runs }: WhatIf): boolean {
  const counts = [days.size, ...Object.values(recipients).map(({ count }) => count), ...Object.values(unknown)];
  return counts.every((count) => count === 0) && runs.was === runs.would;
}

test("a what-if with today's rules finds no difference, also after faults", async () => {
  await using logs = createLogs();
  const met = { messages: 0, skipped: 0, unexplained: 0, changed: 0 };
  const inspect = async (house: House): Promise<void> => {
    const rules = fixedRules(house);
    const named = house.timezones.size === 1 ? { ...rules, timezone: house.timezone } : rules;
    for (const changes of [{}, named]) {
      const found = await ask(house, changes);
      expect(isEmpty(found) ? [] : found).toEqual([]);
      met.messages += found.total.messages.was;
      met.unexplained += found.unexplained;
      for (const { was } of found.total.skipped.values()) met.skipped += was;
    }
    // Control: with another daily limit the answers do differ in some histories, so an empty answer means something.
    const other = await ask(house, { dailyLimit: rules.dailyLimit === 1 ? 2 : 1 });
    met.changed += isEmpty(other) ? 0 : 1;
  };
  await fc.assert(histories(logs, createTally(), inspect, historyCommands), { numRuns: HISTORIES });
  console.log(met);
  expect(met.changed).toBeGreaterThan(HISTORIES / 4);
  expect(met.unexplained).toBeLessThan(met.messages / 20);
});
