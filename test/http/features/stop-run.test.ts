// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { openApp, post, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";

const STARTED = { type: "RunStarted", data: { run_id: "run-1", dry_run: false } } as const;

const stop = (world: AppHarness, body?: object): Promise<Response> =>
  post(world.app, "/social/run/stop", body, { token: TOKEN });

test.each([undefined, {}, { run_id: "run-1" }])(
  "the run in progress is requested to stop once, with the body %j",
  async (body) => {
    await using world = await openApp();
    await world.append("outreach", STARTED);
    for (const _again of [1, 2]) {
      const answer = await stop(world, body);
      expect([answer.status, await answer.json()]).toEqual([202, { run_id: "run-1", status: "stopping" }]);
    }
    const asked = await Array.fromAsync(world.store.read({ types: ["RunStopRequested"] }));
    expect(asked).toMatchObject([{ stream: "outreach", data: { run_id: "run-1" }, meta: { caller: "tests" } }]);
  },
);

test("a stop of a run that is not in progress is refused and not recorded", async () => {
  await using world = await openApp();
  expect(await problemIn(await stop(world))).toBe("409 no-run-in-progress");
  await world.append("outreach", STARTED);
  const head = await world.store.head();
  expect(await problemIn(await stop(world, { run_id: "run-0" }))).toBe("409 no-run-in-progress");
  expect(await problemIn(await stop(world, { run: "run-1" }))).toBe("422 invalid-request");
  expect(await world.store.head()).toEqual(head);
});
