import { afterAll, describe, expect, test } from "bun:test";
import { runCase } from "./run-delivery-fault-case.ts";
import { FAULT_ROWS } from "./delivery-faults.ts";
import { createGate } from "./limit-concurrent-cases.ts";
import { NETWORK_ROWS } from "./delivery-network-table.ts";
import type { Verdict } from "./delivery-verdict.ts";
import { isWhole } from "../harness/case-count.ts";
import { libfaketime } from "./required-tools.ts";

/**
 * Number of cases that run at once. Most of their time they wait. More cases would slow down the services, whose clocks
 * run faster than real time.
 */
const LANES = 4;

/**
 * A short test run tries every sixth fault on each network, beginning at another fault for the next network. Over all
 * networks, every fault is tried.
 */
const STRIDE = 6;

const verdicts = new Map<string, Verdict[]>();
const takeTurn = createGate(LANES);

describe.skipIf(libfaketime === undefined).concurrent("a failing network with kill -9 during the fault", () => {
  for (const [nth, row] of NETWORK_ROWS.entries()) {
    for (const fault of FAULT_ROWS.filter((_, at) => isWhole || at % STRIDE === nth % STRIDE)) {
      test(`${row.network} keeps every dispatch's rules: ${fault.name}`, async () => {
        using _turn = await takeTurn();
        const startedAt = performance.now();
        const verdict = await runCase(row, fault);
        tell(`${row.network} × ${fault.name}`, verdict, performance.now() - startedAt);
        verdicts.set(row.network, [...(verdicts.get(row.network) ?? []), verdict]);
        expect(verdict.faults).toEqual([]);
      });
    }
  }
});

afterAll(() => {
  if (verdicts.size > 0) console.table([...verdicts].map(([network, ofOne]) => ({ network, ...totalsOf(ofOne) })));
});

function tell(name: string, { faults, ...counts }: Verdict, ms: number): void {
  const { requested, delivered, inDoubt, dead, doubled, cutOff, lost } = counts;
  console.log(
    `${name}: requested ${requested}, delivered ${delivered}, in doubt ${inDoubt}, dead ${dead}, ` +
      `cut off by kills ${cutOff}, of them doubled ${doubled}, lost ${lost}` +
      `${faults.length === 0 ? "" : ` (${faults.length} FAULTS)`}; ${(ms / 1000).toFixed(1)} s`,
  );
}

function totalsOf(ofOne: readonly Verdict[]): Record<string, number> {
  const sum = (part: (verdict: Verdict) => number): number => ofOne.reduce((total, one) => total + part(one), 0);
  return {
    cases: ofOne.length,
    requested: sum(({ requested }) => requested),
    delivered: sum(({ delivered }) => delivered),
    "in doubt": sum(({ inDoubt }) => inDoubt),
    dead: sum(({ dead }) => dead),
    "cut off by kills": sum(({ cutOff }) => cutOff),
    "doubled at kill": sum(({ doubled }) => doubled),
    lost: sum(({ lost }) => lost),
  };
}
