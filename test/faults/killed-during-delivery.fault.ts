import { expect, test } from "bun:test";
import { WINDOW_MAX } from "../../src/delivery/pace-and-circuit-breaker.ts";
import { UNRECORDED_MAX } from "../../src/delivery/outcome-recorder.ts";
import { ended } from "./stop-service-after-dispatches-settle.ts";
import { NO_DIGESTS, openLives } from "./killed-services.ts";
import { createLoad } from "./delivery-load.ts";
import { DOUBLING_ROWS, settingsWith } from "./delivery-network-table.ts";
import { faultsOfDispatch } from "./delivery-rules.ts";
import { count } from "./delivery-verdict.ts";
import { libfaketime } from "./required-tools.ts";
import { expectWhole } from "./expect-whole-log.ts";

/**
 * Maximum number of messages that may be sent twice because of one kill: those in flight, and those answered but not
 * yet recorded.
 */
const REPEATED_MAX = WINDOW_MAX + UNRECORDED_MAX;

/** Number of clicks: many times the number of messages that one kill may repeat. */
const CLICKS = 600;
const ARRIVALS_BEFORE_KILL = 200;
const KILLS = 2;

test.skipIf(libfaketime === undefined).each(DOUBLING_ROWS)(
  `$network receives at most ${REPEATED_MAX} repeats and misses no message after kill -9`,
  async (row) => {
    await using lives = await openLives(row, NO_DIGESTS);
    await lives.start(settingsWith(row, lives.world.sandbox));
    const posted = createLoad(lives, row).clicks(CLICKS);
    for (let kill = 0; kill < KILLS; kill++) {
      await lives.killAtArrival(ARRIVALS_BEFORE_KILL);
      await lives.start();
    }
    await posted;
    const { all } = await ended(lives, row);
    const { doubled, cutOff, ...counts } = count(all);
    console.log(`${row.network} with many in flight: ${JSON.stringify(counts)}, cut off ${cutOff}, doubled ${doubled}`);
    expect(all.flatMap((record) => faultsOfDispatch(record, row))).toEqual([]);
    expect(counts).toMatchObject({ requested: CLICKS, delivered: CLICKS, lost: 0 });
    for (const { position, arrived } of lives.kills) {
      const cut = all.filter(
        (record) => record.position <= position && arrived.has(record.name) && record.endedAt > position,
      );
      // At the kill the outcome was not yet recorded for the message that the network had just received, and perhaps
      // for others in flight.
      expect(cut.length).toBeWithin(1, REPEATED_MAX + 1);
    }
    await expectWhole(lives.world);
  },
);
