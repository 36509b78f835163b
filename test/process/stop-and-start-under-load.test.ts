// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BEARER, exported, openInstallation, until, untilListening, type Running } from "../harness/process.ts";

const CLICK = { event: "click", domain: "d", short_code: "s", original_url: "https://shop.example/" };

/** Posts over several connections until stopped. Collects the id of every 202 and all statuses. */
function startPosting(service: Running, connections: number) {
  const acknowledged = new Set<string>();
  const statuses = new Set<number>();
  const stopping = new AbortController();
  const running = Array.from({ length: connections }, async () => {
    while (!stopping.signal.aborted) {
      const answer = await service.post("/api/tracking/event", CLICK, BEARER).catch(() => undefined);
      if (answer === undefined) return;
      statuses.add(answer.status);
      acknowledged.add(((await answer.json()) as { id: string }).id);
    }
  });
  return {
    acknowledged,
    statuses,
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

test("after SIGTERM under load the acknowledged clicks are exactly the recorded ones", async () => {
  await using world = await openInstallation();
  const service = await world.serve();
  const posting = startPosting(service, 32);
  await until(
    () => Promise.resolve(posting.acknowledged.size),
    (size) => size > 200,
  );
  service.process.kill("SIGTERM");
  expect(await service.process.exited).toBe(0);
  await posting.stop();
  const clicks = (await exported(world)).filter(({ type }) => type === "LinkClicked");
  const recorded = clicks.map((event) => (event as unknown as { id: string }).id);
  expect(posting.acknowledged).toEqual(new Set(recorded));
  expect([...posting.statuses]).toEqual([202]);
});

test("an outside reader during writes fails no request", async () => {
  await using world = await openInstallation();
  const service = await world.serve();
  const posting = startPosting(service, 8);
  const counts: number[] = [];
  while (counts.length < 50 || counts.at(-1) === counts[0]) {
    using reader = new DatabaseSync(join(world.directory, "reachlog.sqlite"), { readOnly: true, timeout: 2_000 });
    counts.push(Number(reader.prepare("SELECT count(*) AS n FROM events").get()?.["n"]));
    // The query above blocks this process. The wait for the service's answer lets this process also post clicks, which
    // `startPosting` began.
    await service.get("/api/health");
  }
  await posting.stop();
  expect([...posting.statuses]).toEqual([202]);
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
});

test("one of four services started at once serves, and three exit with 75", async () => {
  await using world = await openInstallation();
  const codes = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = world.start(["serve"]);
      return untilListening(child).then(
        () => "serves",
        () => child.exited,
      );
    }),
  );
  expect(codes.map(String).toSorted((a, b) => a.localeCompare(b))).toEqual(["75", "75", "75", "serves"]);
});
