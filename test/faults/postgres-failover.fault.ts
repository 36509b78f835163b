import { expect, test } from "bun:test";
import { ended, exported, stop, untilListening } from "../harness/process.ts";
import { rowOf } from "./delivery-network-table.ts";
import { openInstances, secondsSince, untilReady } from "./instances.ts";
import { lossesAmong, shownLosses, startNamedClicks, UNHARMED } from "./instances-load.ts";
import { installedPostgres, openPair } from "./postgres-primary-and-standby.ts";
import { expectWhole } from "./expect-whole-log.ts";

const CLICKS = { callers: 4, pauseMs: 20 };
const ROWS = [rowOf("meta")];

/** Number of clicks acknowledged before the primary server dies, and again after. */
const EACH = 200;

/** Number of acknowledged clicks that the standby server never receives, because it was cut off before. */
const UNHEARD = 50;

const EXIT_FAULT = 70;
const EXIT_CONFIG = 78;

if (installedPostgres === undefined) {
  console.log("not run, since no PostgreSQL is installed (Debian: apt-get install postgresql): the failover of a pair");
}

test.skipIf(installedPostgres === undefined)(
  "instances continue with a synchronous standby and lose no acknowledged click",
  async () => {
    await using pair = await openPair(installedPostgres!, { isSynchronous: true });
    await using instances = await openInstances({ count: 2, rows: ROWS, settings: { DATABASE_URL: pair.url } });
    using load = startNamedClicks(instances, CLICKS);
    await load.more(EACH);
    const failedAt = performance.now();
    await pair.failOver();
    await load.more(1);
    const away = secondsSince(failedAt);
    await load.more(EACH);
    await load.stop();
    await untilReady(instances);
    // All instances kept running through the failover.
    expect(await Promise.all(instances.places.map((place) => instances.end(place, "SIGTERM")))).toEqual([0, 0]);
    const losses = lossesAmong(await exported(instances.world), load);
    console.log(
      `failover to a synchronous standby: acknowledged ${load.acknowledged.size}, ${shownLosses(losses)}, ` +
        `the next one after ${away} s`,
    );
    expect(losses).toEqual(UNHARMED);
    await expectWhole(instances.world);
  },
);

test.skipIf(installedPostgres === undefined)(
  "each instance ends when a lagging standby takes over, and starts only with --accept-loss",
  async () => {
    await using pair = await openPair(installedPostgres!, { isSynchronous: false });
    await using instances = await openInstances({ count: 2, rows: ROWS, settings: { DATABASE_URL: pair.url } });
    const { world } = instances;
    const services = await Promise.all(instances.places.map(async (place) => (await instances.at(place)).service));
    using load = startNamedClicks(instances, CLICKS);
    await load.more(EACH);
    await pair.cutOff();
    await load.more(UNHEARD);
    await untilReady(instances);
    await pair.failOver();
    expect(await Promise.all(services.map(({ process }) => process.exited))).toEqual([EXIT_FAULT, EXIT_FAULT]);
    load[Symbol.dispose]();
    for (const service of services)
      expect(service.log()).toMatch(/the log no longer holds position \d+ as this instance/);
    const refused = await ended(world.start(["serve"]));
    expect([refused.code, refused.err]).toEqual([EXIT_CONFIG, expect.stringContaining("--accept-loss")]);

    const accepting = await untilListening(world.start(["serve", "--accept-loss"]));
    const other = await world.serve();
    expect(await Promise.all([accepting, other].map(stop))).toEqual([0, 0]);
    const log = await exported(world);
    const losses = lossesAmong(log, load);
    console.log(
      `failover to a standby that was behind: acknowledged ${load.acknowledged.size}, ${shownLosses(losses)}`,
    );
    expect(losses.lost.length).toBeGreaterThanOrEqual(UNHEARD);
    expect(losses).toMatchObject({ zombies: [], doubled: [] });
    expect(log.filter(({ type }) => type === "LogLossAccepted")).toHaveLength(1);
    await expectWhole(world);
  },
);
