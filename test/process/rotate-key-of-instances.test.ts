// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { CLICK } from "../harness/sample-click.ts";
import { authorize, ended, exported, kill, openInstallation, stop, type Running } from "../harness/process.ts";

const [FROM, TO] = [1, 2].map((fill) => Buffer.alloc(32, fill).toString("hex")) as [string, string];

/**
 * Posts a click, for which the service encrypts personal data, and reads the account, for which it needs the tokens.
 * Returns both statuses.
 */
async function worksAt({ post, get }: Running): Promise<readonly number[]> {
  return [(await post("/api/tracking/event", CLICK)).status, (await get("/social/me")).status];
}

test("a rolling restart rotates the master key without an instance that fails", async () => {
  await using world = await openInstallation();
  // The encryption keys are in a separate database.
  const databases = { DATABASE_URL: await newDatabase(), KEYS_DATABASE_URL: await newDatabase() };
  Object.assign(world.env, databases, { REACHLOG_KEY: FROM });
  const rotate = (more: Record<string, string>, ...args: string[]) =>
    ended(world.start(["key", "rotate", ...args], more));
  const [one, two] = [await world.serve(), await world.serve()];
  await authorize(one, world.sandbox);
  expect([await worksAt(one), await worksAt(two)]).toEqual([
    [202, 200],
    [202, 200],
  ]);

  expect((await rotate({ REACHLOG_KEY_NEXT: TO })).code).toBe(0);
  expect([await worksAt(one), await worksAt(two)]).toEqual([
    [202, 200],
    [202, 200],
  ]);
  // The operator restarts each instance with the new key. An instance that is killed before its turn starts once more
  // with the old key, and still works.
  await kill(one);
  const again = await world.serve();
  expect([await worksAt(again), await worksAt(two)]).toEqual([
    [202, 200],
    [202, 200],
  ]);
  await stop(again);
  const renewed = await world.serve({ REACHLOG_KEY: TO });
  expect([await worksAt(renewed), await worksAt(two)]).toEqual([
    [202, 200],
    [202, 200],
  ]);

  expect(await rotate({}, "--end")).toMatchObject({ code: 78, err: expect.stringContaining("the former key") });
  expect((await rotate({ REACHLOG_KEY: TO }, "--end")).code).toBe(0);
  // The second instance, which was not restarted yet, works with the former key until it stops.
  expect([await worksAt(renewed), await worksAt(two)]).toEqual([
    [202, 200],
    [202, 200],
  ]);
  await stop(two);
  expect(await ended(world.start(["serve"]))).toMatchObject({
    code: 78,
    err: expect.stringContaining("was encrypted"),
  });

  world.env["REACHLOG_KEY"] = TO;
  const clicks = (await exported(world)).filter(({ type }) => type === "LinkClicked");
  expect(clicks).toHaveLength(10);
  expect(clicks.map(({ data }) => data["user_agent"])).toEqual(clicks.map(() => CLICK.user_agent));
});
