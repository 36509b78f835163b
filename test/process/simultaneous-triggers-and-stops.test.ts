// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { addPeople } from "../faults/add-people-and-count-messages.ts";
import { idle } from "../faults/expect-daily-limit-kept.ts";
import { authorize, exported, openInstallation, until } from "../harness/process.ts";

test("with one message left of the quota, 16 triggers in two waves send one", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000 } });
  const { accepted } = world.sandbox.x;
  await addPeople(world, 99);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  const first = await (await service.post("/social/run", undefined, { prefer: "wait=300" })).json();
  expect(first).toMatchObject({ reason: "completed", sent: 99 });
  await addPeople(world, 110);
  const statuses: number[] = [];
  for (let wave = 1; wave <= 2; wave++) {
    const answers = await Promise.all(Array.from({ length: 8 }, () => service.post("/social/run")));
    statuses.push(...answers.map(({ status }) => status));
    await idle(service);
  }
  expect(statuses.filter((status) => status === 202)).toHaveLength(1);
  for (const status of statuses) expect([202, 409, 429]).toContain(status);
  expect([accepted.size, Math.max(...accepted.values())]).toEqual([100, 1]);
});

test("a run attempts no message to a recipient after their suppression is recorded", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000 } });
  const people = 24;
  await addPeople(world, people);
  // The run sends only one message a second, so that the commands run between its messages.
  const service = await world.serve({ SEND_SPACING_SECONDS: "1" });
  await authorize(service, world.sandbox);
  const run = service.post("/social/run", undefined, { prefer: "wait=300" });
  await until(
    () => Promise.resolve(world.sandbox.x.accepted.size),
    (size) => size > 0,
  );
  // Suppresses recipients from the end of the list, four at once, while the run sends from the beginning. The last of
  // these commands come after the run has already contacted their recipients.
  for (let number = people; number > 0; number -= 4) {
    const handles = [0, 1, 2, 3].map((offset) => `@person_${number - offset}`);
    await Promise.all(handles.map((handle) => world.command("recipients", "suppress", handle)));
  }
  expect(((await (await run).json()) as { reason: string }).reason).toBe("completed");
  const suppressed = new Set<string>();
  const after: string[] = [];
  for (const { type, data } of await exported(world)) {
    const { username = "" } = (data["recipient"] ?? {}) as { username?: string };
    if (type === "RecipientSuppressed") suppressed.add(username);
    if (type === "DirectMessageAttempted" && suppressed.has(username)) after.push(username);
  }
  expect(after).toEqual([]);
  expect(suppressed.size).toBe(people);
  // Some recipients got their message before their suppression and others got none, so the suppressions and the run
  // have overlapped.
  expect(world.sandbox.x.accepted.size).toBeWithin(1, people);
});
