import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BEARER, openInstallation, until, type Running, stop } from "../harness/process.ts";
import { click, startLoad } from "./click-load.ts";
import { NO_CHANNELS } from "./no-channels.ts";
import { has, isRoot } from "./required-tools.ts";
import { expectWhole, lossesOf } from "./expect-whole-log.ts";

const EXIT_LOG_FAILED = 70;

/**
 * For each case, the number of the first fsync that fails, counted from the moment when strace is attached. All later
 * ones fail too, as on a dead disk.
 */
const FIRST_FAILING = [1, 2, 3, 5, 8, 13];

test.skipIf(!has("strace") || !isRoot)(
  "a failing fsync ends the service with exit code 70 and loses no acknowledged click",
  async () => {
    await using world = await openInstallation();
    const acknowledged = new Set<string>();
    let refused = 0;
    let cutOff = 0;
    for (const nth of FIRST_FAILING) {
      const service = await world.serve();
      using load = startLoad({ connections: 8, service: () => Promise.resolve(service) });
      await until(
        () => Promise.resolve(load.acknowledged.size),
        (size) => size > 50,
      );
      const strace = failFsyncs(service, nth, join(world.directory, "strace.txt"));
      expect(await service.process.exited).toBe(EXIT_LOG_FAILED);
      await strace.exited;
      await load.stop();
      expect([...load.answers.keys()].filter((status) => status !== 202 && status !== 503)).toEqual([]);
      for (const id of load.acknowledged) acknowledged.add(id);
      refused += load.answers.get(503) ?? 0;
      cutOff += load.unanswered;
    }
    const service = await world.serve();
    expect((await service.post("/api/tracking/event", click(0), BEARER)).status).toBe(202);
    expect(await stop(service)).toBe(0);

    const { lost, doubled } = await lossesOf(world, acknowledged);
    console.log(
      `failing fsync, ${FIRST_FAILING.length} times: acknowledged ${acknowledged.size}, lost ${lost.length}, ` +
        `answered 503 ${refused}, cut off by the exit ${cutOff}`,
    );
    expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
    await expectWhole(world);
  },
);

test.skipIf(!has("strace") || !isRoot)(
  "a click in doubt after a failing fsync gets a 503 before the service ends",
  async () => {
    await using world = await openInstallation();
    Object.assign(world.env, NO_CHANNELS);
    const service = await world.serve();
    // The first click of the day creates its keys. Later clicks sync only the log.
    expect((await service.post("/api/tracking/event", click(0), BEARER)).status).toBe(202);
    const output = join(world.directory, "strace.txt");
    const strace = failFsyncs(service, 1, output);
    await until(
      () => Promise.resolve(isTraced(service)),
      (traced) => traced,
    );
    const answer = await service.post("/api/tracking/event", click(0), BEARER);
    expect([answer.status, await answer.json()]).toMatchObject([503, { type: "urn:reachlog:problem:log-in-doubt" }]);
    expect(await service.process.exited).toBe(EXIT_LOG_FAILED);
    await strace.exited;
  },
);

/**
 * Attaches strace to the running service, where every fsync from the `nth` on then fails; ends when the service ends.
 */
function failFsyncs({ process: { pid } }: Running, nth: number, output: string): Bun.Subprocess {
  return Bun.spawn(
    [
      "strace",
      "-f",
      "-qq",
      "-o",
      output,
      "-e",
      "trace=fsync",
      "-e",
      `inject=fsync:error=EIO:when=${nth}+`,
      "-p",
      `${pid}`,
    ],
    { stdio: ["ignore", "ignore", "ignore"] },
  );
}

/** True if strace is attached to every thread of the service, and so to the thread of the log's writer. */
function isTraced({ process: { pid } }: Running): boolean {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.every(
    (thread) => !/^TracerPid:\t0$/m.test(readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8")),
  );
}
