import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { authorize, BEARER, exported, openInstallation, until, type Running, stop } from "../harness/process.ts";
import { click, startLoad } from "./click-load.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { NO_CHANNELS } from "./no-channels.ts";
import { mountSmallDisk } from "./small-and-failing-disks.ts";
import { isRoot } from "./required-tools.ts";
import { lossesOf } from "./expect-whole-log.ts";

const DISK_MIB = 8;

/** Time in ms within which the service promises to work again, without a restart, once the disk has room. */
const RECOVERY_MS_MAX = 5_000;

/**
 * Number of requests while the disk is full. The next constant is the memory in MiB that they may take: little, because
 * the service keeps nothing of a refused request.
 */
const REFUSED = 3_000;
const GROWTH_MIB_MAX = 64;

test.skipIf(!isRoot)("a service on a full disk answers 503 and recovers once there is room", async () => {
  await using disk = await mountSmallDisk(DISK_MIB);
  await using world = await openInstallation();
  Object.assign(world.env, NO_CHANNELS, { DATABASE_URL: `sqlite:${join(disk.path, "reachlog.sqlite")}` });
  const service = await world.serve();
  using load = startLoad({ connections: 8, service: () => Promise.resolve(service), urlChars: 1_000 });
  await until(
    () => Promise.resolve(load.acknowledged.size),
    (size) => size > 200,
  );
  await disk.fill();
  await until(
    () => Promise.resolve(load.answers.get(503) ?? 0),
    (refused) => refused > 100,
  );
  const refused = await service.post("/api/tracking/event", click(0), BEARER);
  expect([refused.status, refused.headers.get("content-type")]).toEqual([503, "application/problem+json"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await refused.json()).toMatchObject({ type: "urn:reachlog:problem:log-unavailable", status: 503 });
  const health = await service.get("/api/health");
  expect([health.status, await health.json()]).toMatchObject([503, { status: "degraded" }]);
  expect((await service.get("/social/stats")).status).toBe(200);

  const before = residentMib(service);
  const until503s = (load.answers.get(503) ?? 0) + REFUSED;
  await until(
    () => Promise.resolve(load.answers.get(503) ?? 0),
    (count) => count > until503s,
  );
  const growth = residentMib(service) - before;
  await load.stop();

  await disk.free();
  const freedAt = performance.now();
  await until(
    () => service.post("/api/tracking/event", click(1), BEARER),
    ({ status }) => status === 202,
    RECOVERY_MS_MAX,
  );
  const recoveryMs = performance.now() - freedAt;
  expect((await service.get("/api/health")).status).toBe(200);
  expect(await stop(service)).toBe(0);
  // The service logs one line at the start of the outage, and one at its end.
  const lines = ["requests are refused: they cannot be recorded", "requests are recorded again"];
  expect(lines.map((line) => service.log().split(line).length - 1)).toEqual([1, 1]);
  const { lost, doubled } = await lossesOf(world, load.acknowledged);
  console.log(
    `full disk: acknowledged ${load.acknowledged.size}, lost ${lost.length}, refused ${load.answers.get(503)}, ` +
      `memory ${growth.toFixed(0)} MiB more, works again after ${recoveryMs.toFixed(0)} ms`,
  );
  expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
  expect([...load.answers.keys()].toSorted((a, b) => a - b)).toEqual([202, 503]);
  expect(growth).toBeLessThan(GROWTH_MIB_MAX);
  expect(await world.execute("audit", "verify")).toMatchObject({ code: 0 });
});

test.skipIf(!isRoot)("a disk that fills during a run causes no unrecorded and no second message", async () => {
  const people = 40;
  await using disk = await mountSmallDisk(DISK_MIB);
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000, lateCommitMs: 100 } });
  Object.assign(world.env, NO_CHANNELS, { DATABASE_URL: `sqlite:${join(disk.path, "reachlog.sqlite")}` });
  await addPeople(world, people);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  expect((await service.post("/social/run")).status).toBe(202);
  await until(
    () => Promise.resolve(world.sandbox.x.accepted.size),
    (size) => size >= 10,
  );
  // The first click of the day creates its keys, so a later 503 can only be caused by the log.
  expect((await service.post("/api/tracking/event", click(0), BEARER)).status).toBe(202);
  await disk.fill();
  await until(
    () => service.post("/api/tracking/event", click(0), BEARER),
    ({ status }) => status === 503,
  );
  await until(
    () => Promise.resolve(service.log()),
    (log) => /a run (?:failed|ended by a fault)/.test(log),
  );
  const reachedWhenFull = arrivals(world).people;
  await disk.free();
  // Once there is space, the service closes the interrupted run. The next run contacts all other recipients.
  await settled(service);
  expect((await service.post("/social/run", undefined, { prefer: "wait=300" })).status).toBe(200);
  await settled(service);

  const intents = new Map<string, string>();
  for (const { type, data } of await exported(world)) {
    if (type !== "DirectMessageAttempted") continue;
    const { id } = data["recipient"] as { id: string };
    expect(intents.has(id)).toBe(false);
    intents.set(id, String(data["attempt_id"]));
  }
  const { accepted } = world.sandbox.x;
  const unrecorded = [...accepted.keys()].filter((id) => !intents.has(id));
  console.log(
    `full disk in a run: ${reachedWhenFull} reached when it was full, ${accepted.size} in the end, ` +
      `${unrecorded.length} without an intent, at most ${arrivals(world).mostToOne} to one person`,
  );
  expect(unrecorded).toEqual([]);
  expect(reachedWhenFull).toBeLessThan(people);
  const stats = (await (await service.get("/social/stats")).json()) as { sent: number; failed: number };
  expect(arrivals(world)).toEqual({ people: stats.sent, mostToOne: 1 });
  // The disk may have become full between an intent and its request. The service then finds no message at X, records it
  // as failed and does not write to that recipient again.
  expect(stats.failed).toBeWithin(0, 2);
  expect(stats.sent + stats.failed).toBe(people);
  expect(await world.execute("audit", "verify")).toMatchObject({ code: 0 });
});

async function settled(service: Running): Promise<void> {
  await until(
    async () => (await (await service.get("/social/health")).json()) as { running: boolean },
    ({ running }) => !running,
    90_000,
  );
}

function residentMib({ process: { pid } }: Running): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}
