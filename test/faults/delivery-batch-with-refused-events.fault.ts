import { expect, test } from "bun:test";
import { ended } from "./stop-service-after-dispatches-settle.ts";
import { NO_DIGESTS, openLives } from "./killed-services.ts";
import { createLoad } from "./delivery-load.ts";
import { NETWORK_ROWS, settingsWith } from "./delivery-network-table.ts";
import { startPickyMeta } from "./rejecting-meta-proxy.ts";
import { faultsOfDispatch } from "./delivery-rules.ts";
import { count } from "./delivery-verdict.ts";
import { libfaketime } from "./required-tools.ts";
import { expectWhole } from "./expect-whole-log.ts";

const CLICKS = 200;
const BAD_EVERY = 40;
const BAD_URL = "https://shop.example/bad";

/**
 * Pause in seconds that the network asks for. Meanwhile all clicks arrive, so the service then sends them in one batch.
 */
const PAUSE_S = 30;

/**
 * Number of events that arrive at the network before each kill. By then the service halves the refused batch again and
 * again to find its bad events, so each kill interrupts that.
 */
const ARRIVALS_BEFORE_KILLS = [1, 80];

test.skipIf(libfaketime === undefined).each(NETWORK_ROWS.filter(({ network }) => network === "meta"))(
  "$network counts each good event once after kill -9 while a batch is halved",
  async (row) => {
    await using lives = await openLives(row, NO_DIGESTS);
    const { sandbox } = lives.world;
    await using picky = startPickyMeta(sandbox.urls.meta, BAD_URL);
    await lives.start({ ...settingsWith(row, sandbox), META_API_URL: picky.url });
    const load = createLoad(lives, row);
    const isBad = (number: number): boolean => number % BAD_EVERY === BAD_EVERY / 2;
    await load.pause(PAUSE_S);
    await load.clicks(CLICKS, (number) => (isBad(number) ? { original_url: BAD_URL } : {}));
    for (const arrivals of ARRIVALS_BEFORE_KILLS) {
      await lives.killAtArrival(arrivals);
      await lives.start();
    }
    const { all } = await ended(lives, row);
    const { doubled, ...counts } = count(all);
    const bad = CLICKS / BAD_EVERY;
    console.log(
      `${row.network}, halved batches: ${JSON.stringify(counts)}, doubled ${doubled}, ${picky.sizes.length} requests, ` +
        `arrived at the kills ${lives.kills.map(({ arrived }) => arrived.size).join(" and ")}`,
    );
    expect(all.flatMap((record) => faultsOfDispatch(record, row))).toEqual([]);
    expect({ ...counts, doubled }).toMatchObject({
      requested: CLICKS + 1,
      delivered: CLICKS + 1 - bad,
      dead: bad,
      doubled: 0,
      lost: 0,
    });
    // At each kill, some but not all of the good events had arrived: the service was halving the refused batch. After
    // the restart some were sent again, so Meta accepted more events than there are good clicks.
    for (const { arrived } of lives.kills) expect(arrived.size).toBeWithin(1, CLICKS - bad);
    expect(sandbox.meta.accepted).toBeGreaterThan(CLICKS + 1 - bad);
    await expectWhole(lives.world);
  },
);
