// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { ask, openApp } from "../../harness/in-process/app.ts";

test("stats count over all time and name their position", async () => {
  await using world = await openApp();
  const stats = async () => (await ask(world.app, "/social/stats")).json();
  expect(await stats()).toEqual({ sent: 0, skipped: 0, failed: 0, as_of: { position: 0, time: null } });
  const skip = { run_id: "run-1", recipient: { id: "7" }, reason: "suppressed" } as const;
  await world.append("outreach", { type: "DirectMessageSkipped", data: skip });
  expect(await stats()).toEqual({
    sent: 0,
    skipped: 1,
    failed: 0,
    as_of: { position: 1, time: world.projector.time ?? "" },
  });
});

test("stats are marked as stale while the log is unreachable", async () => {
  await using world = await openApp({ awaySince: 0 });
  expect(await (await ask(world.app, "/social/stats")).json()).toMatchObject({ as_of: { stale: true } });
});
