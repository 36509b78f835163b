import { describe, expect, test } from "bun:test";
import { ended } from "./stop-service-after-dispatches-settle.ts";
import { createGate } from "./limit-concurrent-cases.ts";
import { openLives, untilSettled, type Lives } from "./killed-services.ts";
import { createLoad } from "./delivery-load.ts";
import { arrivalsAt, NETWORK_ROWS, settingsWith, type NetworkRow } from "./delivery-network-table.ts";
import { faultsOfDispatch } from "./delivery-rules.ts";
import type { DispatchRecord } from "./delivery-records.ts";
import { count } from "./delivery-verdict.ts";
import { libfaketime } from "./required-tools.ts";
import { expectWhole } from "./expect-whole-log.ts";

/**
 * Number of cases that run at once. Each case mostly waits for the end of the long pause that it made the network ask
 * for with a 429.
 */
const LANES = 4;

/**
 * Age in seconds from which a click is sent in a digest. After the pause of `PAUSE_S` that the network asks for, every
 * click is that old.
 */
const DIGEST_AFTER_S = 30;
const PAUSE_S = 40;
const CLICKS = 60;

const takeTurn = createGate(LANES);

describe.skipIf(libfaketime === undefined).concurrent("kill -9 with a digest in flight", () => {
  test.each(NETWORK_ROWS.filter(({ channel }) => channel !== "ads"))(
    "$network receives the digest's clicks again, but not those of a digest in doubt",
    async (row) => {
      using _turn = await takeTurn();
      await using lives = await openLives(row, { CHAT_DIGEST_AFTER_SECONDS: String(DIGEST_AFTER_S) });
      const { sandbox } = lives.world;
      const { network } = row;
      await lives.start(settingsWith(row, sandbox));
      const load = createLoad(lives, row);

      await load.pause(PAUSE_S);
      sandbox.faults.add({ network, kind: "reset_after_delivery", count: 1 });
      await load.clicks(CLICKS);
      await untilSettled(lives);
      // After a failure, the service sends clicks one by one and no digests until one click has arrived. This is that
      // click.
      await load.clicks(1);
      await untilSettled(lives);

      await load.pause(PAUSE_S);
      const killed = lives.killAtArrival(1);
      await load.clicks(CLICKS);
      await killed;
      const cut = clicksAtNetwork(row, lives).at(-1) ?? 0;
      await lives.start();

      const { all } = await ended(lives, row);
      const { requested, delivered, inDoubt, lost } = count(all);
      const arrived = clicksAtNetwork(row, lives);
      const recorded = clicksRecorded(all);
      console.log(
        `${network}, digests: requested ${requested}, delivered ${delivered}, in doubt ${inDoubt}, lost ${lost}; ` +
          `messages of ${arrived.join(", ")} clicks, of them cut off the one of ${cut}`,
      );
      expect(all.flatMap((one) => faultsOfDispatch({ ...one, arrived: 1 }, row))).toEqual([]);
      // The network received each message of the log, and the one message whose answer was cut off.
      expect(arrived.toSorted(ascending)).toEqual([...recorded, cut].toSorted(ascending));
      expect([cut, inDoubt, delivered]).toEqual([CLICKS + 1, CLICKS + 1, CLICKS + 2]);
      await expectWhole(lives.world);
    },
  );
});

/** Returns the number of clicks in each message that arrived at the network. */
function clicksAtNetwork(row: NetworkRow, { world }: Lives): number[] {
  const texts = arrivalsAt(row, world.sandbox).kept as readonly { readonly text: string }[];
  return texts.map(({ text }) => Number(/(\d+) link events/.exec(text)?.[1] ?? 1));
}

/**
 * Returns the number of clicks in each message, according to the log: clicks whose outcomes name the same digest were
 * sent in one message.
 */
function clicksRecorded(all: readonly DispatchRecord[]): number[] {
  const messages = Map.groupBy(all, ({ position, outcomes }) => outcomes.at(-1)?.data["digest"] ?? position);
  return [...messages.values()].map(({ length }) => length);
}

function ascending(one: number, other: number): number {
  return one - other;
}
