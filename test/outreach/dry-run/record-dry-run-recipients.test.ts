// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { METADATA, LOG_ENGINES } from "../../harness/in-process/temporary-log.ts";
import { openOutreach, openOutreachOn, RULES } from "../../harness/in-process/simulated-outreach-processes.ts";
import { person } from "../../harness/in-process/social-network.ts";
import { parseTemplate } from "../../../src/template/template.ts";

const numbers = (from: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => String(from + index));

test.each(LOG_ENGINES)("a dry run lists the recipients of messages, and the skipped ones, %s", async (engine) => {
  await using world = await openOutreachOn(engine, "10", "12");
  world.network.people.set("11", person("11", { receivesOurDm: false }));
  await world.list("11");
  const { run } = await world.start({ rules: { ...RULES, template: parseTemplate("Hi {{name}}\n---\nHello") } });
  const { run_id } = await run({ dryRun: true });
  const listed = await world.events("DryRunRecipientListed");
  expect(listed.map(({ data }) => data)).toEqual([
    { run_id, recipient: { id: "11", username: "user_11" }, reason: "cannot_receive_dm" },
    { run_id, recipient: { id: "10", username: "user_10" }, name: "Name 10", variant: "B" },
    { run_id, recipient: { id: "12", username: "user_12" }, name: "Name 12", variant: "B" },
  ]);
  expect(listed[0]?.meta).toMatchObject(METADATA);
  const [finished] = await world.events("DryRunFinished");
  expect(finished?.data).toMatchObject({ variants: { B: 2 }, skips: { cannot_receive_dm: 1 }, estimate: { sends: 2 } });
});

test.each(LOG_ENGINES)("the parts of a dry run sum to all people, each counted once, %s", async (engine) => {
  await using world = await openOutreachOn(engine, "10");
  await world.list("11", "12", "13");
  world.network.people.set("12", person("12", { receivesOurDm: false }));
  world.network.people.set("11", person("11"));
  world.network.people.set("13", person("13"));
  world.network.answers.push(undefined, "recipient_closed");
  const { run } = await world.start({ rules: { ...RULES, dailyLimit: 100 } });
  await run();
  await world.append([
    {
      type: "RecipientHeld",
      data: { recipient: { id: "13" }, message_id: "m", received_at: "2026-03-01T00:00:00.000Z" },
    },
  ]);
  await run({ dryRun: true });
  const [finished] = await world.events("DryRunFinished");
  const { would_send = 0, would_skip = 0, passed = {} } = finished?.data ?? {};
  const others = Object.values(passed).reduce((sum, count) => sum + count, 0);
  expect([would_send + would_skip + others, passed]).toEqual([4, { failed_before: 1, held: 1 }]);
});

test("a dry run of many skipped recipients lists the first 100 of each reason, and counts all", async () => {
  await using world = await openOutreach(...numbers(2_000, 20));
  await world.append(
    numbers(1_000, 150).map((id) => ({
      type: "RecipientAdded",
      data: { recipient: { id }, basis: "none", fields: {}, source: "list" },
    })),
  );
  const { run } = await world.start();
  await run({ dryRun: true });
  const listed = await world.events("DryRunRecipientListed");
  expect([listed.filter(({ data }) => data.reason === "no_consent").length, listed.length]).toEqual([100, 120]);
  const [finished] = await world.events("DryRunFinished");
  expect(finished?.data).toMatchObject({ would_skip: 150, skips: { no_consent: 150 } });
});

test("a dry run changes nothing about a run after it", async () => {
  await using world = await openOutreach("10", "11");
  const { run } = await world.start();
  await run({ dryRun: true });
  expect(await run()).toMatchObject({ reason: "completed", sent: 2, skipped: 0 });
});
