import { expect, test } from "bun:test";
import { exported, openInstallation, until, stop } from "../harness/process.ts";
import { startLoad } from "./click-load.ts";
import { expectWhole } from "./expect-whole-log.ts";

const STOPS = 5;
const CONNECTIONS = 64;
const SHUTDOWN_SECONDS = 10;

test(`SIGTERM under ${CONNECTIONS} connections exits 0 with each recorded click answered`, async () => {
  await using world = await openInstallation();
  world.env["SHUTDOWN_SECONDS"] = String(SHUTDOWN_SECONDS);
  const acknowledged = new Set<string>();
  let slowestMs = 0;
  for (let time = 0; time < STOPS; time++) {
    const service = await world.serve();
    using load = startLoad({ connections: CONNECTIONS, service: () => Promise.resolve(service) });
    await until(
      () => Promise.resolve(load.acknowledged.size),
      (size) => size > 500,
    );
    const signalledAt = performance.now();
    expect(await stop(service)).toBe(0);
    slowestMs = Math.max(slowestMs, performance.now() - signalledAt);
    await load.stop();
    for (const id of load.acknowledged) acknowledged.add(id);
  }
  const recorded = new Set(
    (await exported(world))
      .filter(({ type }) => type === "LinkClicked")
      .map((event) => (event as unknown as { id: string }).id),
  );
  const unanswered = [...recorded].filter((id) => !acknowledged.has(id));
  const lost = [...acknowledged].filter((id) => !recorded.has(id));
  console.log(
    `SIGTERM ${STOPS} times: acknowledged ${acknowledged.size}, lost ${lost.length}, ` +
      `recorded but not answered ${unanswered.length}, slowest end ${slowestMs.toFixed(0)} ms`,
  );
  expect({ lost, unanswered }).toEqual({ lost: [], unanswered: [] });
  expect(slowestMs).toBeLessThan(SHUTDOWN_SECONDS * 1000);
  await expectWhole(world);
});
