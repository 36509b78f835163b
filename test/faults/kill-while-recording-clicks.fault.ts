import { expect, test } from "bun:test";
import { openInstallation, until, type Running, stop } from "../harness/process.ts";
import { startLoad } from "./click-load.ts";
import { isWhole } from "../harness/case-count.ts";
import { expectWhole, lossesOf } from "./expect-whole-log.ts";

const KILLS = isWhole ? 100 : 30;
const CONNECTIONS = 8;

/**
 * Latest time in ms at which the service is killed, counted from the moment when it listens. Most kills come during the
 * first batches, some under full load.
 */
const LIFE_MS_MAX = 800;

/** One of this many kills comes during a start. The next start must cope with what the killed start left. */
const KILL_DURING_START_EVERY = 10;
const START_MS_MAX = 400;

test(`no acknowledged click is lost or duplicated after ${KILLS} times kill -9 under load`, async () => {
  await using world = await openInstallation();
  // Only the ads channel stays configured, so that outcomes and retries are written between the clicks.
  Object.assign(world.env, { CHAT_WEBHOOK_URL: "", TELEGRAM_BOT_TOKEN: "", TELEGRAM_CHAT_ID: "" });
  let serving = world.serve();
  using load = startLoad({ connections: CONNECTIONS, service: () => serving });

  for (let number = 1; number <= KILLS; number++) {
    const service = await serving;
    await Bun.sleep(Math.random() * LIFE_MS_MAX);
    const restart = Promise.withResolvers<Running>();
    serving = restart.promise;
    await killed(service.process);
    if (number % KILL_DURING_START_EVERY === 0) {
      const starting = world.start(["serve"]);
      await Bun.sleep(Math.random() * START_MS_MAX);
      await killed(starting);
    }
    restart.resolve(world.serve());
  }
  const last = await serving;
  const before = load.acknowledged.size;
  await until(
    () => Promise.resolve(load.acknowledged.size),
    (size) => size > before,
  );
  await load.stop();
  expect(await stop(last)).toBe(0);

  const { lost, doubled } = await lossesOf(world, load.acknowledged);
  console.log(
    `kills ${KILLS}: acknowledged ${load.acknowledged.size}, lost ${lost.length}, doubled ${doubled.length}, ` +
      `requests cut off ${load.unanswered}`,
  );
  expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
  expect(load.acknowledged.size).toBeGreaterThan(KILLS);
  expect([...load.answers.keys()]).toEqual([202]);
  await expectWhole(world);
});

async function killed(child: Running["process"]): Promise<void> {
  child.kill("SIGKILL");
  await child.exited;
}
