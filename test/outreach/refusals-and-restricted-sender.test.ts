// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { REFUSED_IN_A_ROW_MAX } from "../../src/outreach/quota-and-reasons-to-end-run.ts";
import { person } from "../harness/in-process/social-network.ts";
import { openOutreach, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";

const ids = Array.from({ length: REFUSED_IN_A_ROW_MAX + 2 }, (_, number) => String(10 + number));
const row = ids.slice(0, REFUSED_IN_A_ROW_MAX);

const reached = ({ network }: OutreachHarness): string[] => network.accepted.map(({ recipientId }) => recipientId);
const retry = (id: string) => ({ type: "RecipientRetryAllowed", data: { recipient: { id } } }) as const;

test.each(["not_permitted", "recipient_closed"] as const)(
  "one recipient's %s ends neither this run nor the next",
  async (answer) => {
    await using world = await openOutreach("10", "11", "12");
    world.network.answers.push(answer);
    const { run, announced } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 2, failed: 1 });
    expect(await world.events("DirectMessageFailed")).toMatchObject([
      { data: { reason: answer, recipient: { id: "10" }, frees_quota: true, retry: false } },
    ]);
    expect(await run()).toMatchObject({ sent: 0, failed: 0 });
    expect(world.network.asked).toEqual(["10", "11", "12"]);
    expect(announced).toEqual([]);
  },
);

describe("a series of not_permitted", () => {
  test("ends the run as sender_restricted, is announced, and loses no recipient", async () => {
    await using world = await openOutreach(...ids);
    for (const _ of row) world.network.answers.push("not_permitted");
    const { run, announced } = await world.start();
    expect(await run()).toMatchObject({ reason: "sender_restricted", sent: 0, failed: row.length });
    expect(world.network.asked).toEqual(row);
    expect(announced).toEqual(["outreach stopped: sender_restricted"]);
    const failed = (await world.events("DirectMessageFailed")).map(({ data }) => data);
    expect(failed.map(({ reason }) => reason)).toEqual([
      ...row.slice(1).map(() => "not_permitted" as const),
      "sender_restricted",
    ]);
    const allowed = await world.events("RecipientRetryAllowed");
    expect(allowed.map(({ data }) => [data.recipient.id, data.run_id])).toEqual(
      row.slice(0, -1).map((id) => [id, failed[0]?.run_id]),
    );
    // X has lifted the restriction. The run first contacts the recipients that no run has tried before.
    expect(await run()).toMatchObject({ reason: "completed", sent: ids.length });
    expect(reached(world)).toEqual([...ids.slice(row.length), ...row]);
  });

  test("does not include recipient_closed", async () => {
    await using world = await openOutreach(...ids, "90");
    const { run } = await world.start();
    for (const _ of ids) world.network.answers.push("recipient_closed");
    world.network.answers.push("not_permitted");
    expect(await run()).toMatchObject({ reason: "completed", sent: 0, failed: ids.length + 1 });
  });

  test("is counted across runs", async () => {
    await using world = await openOutreach();
    const { run } = await world.start();
    for (const id of row) {
      world.network.people.set(id, person(id));
      await world.list(id);
      world.network.answers.push("not_permitted");
      expect((await run()).reason).toBe(id === row.at(-1) ? "sender_restricted" : "completed");
    }
    expect(await run()).toMatchObject({ sent: row.length });
  });

  test("is interrupted by an accepted message", async () => {
    await using world = await openOutreach(...ids);
    for (const [at] of ids.entries()) world.network.answers.push(at === 2 ? undefined : "not_permitted");
    const { run } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: ids.length - 1 });
  });

  test("does not include repeated refusals of one recipient", async () => {
    await using world = await openOutreach("10");
    const { run } = await world.start();
    for (const _ of ids) {
      world.network.answers.push("not_permitted");
      expect(await run()).toMatchObject({ reason: "completed", failed: 1 });
      await world.append([retry("10")]);
    }
  });

  test("closes the recipients if they are refused again after an accepted message", async () => {
    await using world = await openOutreach(...row);
    for (const _ of row) world.network.answers.push("not_permitted");
    const { run, announced } = await world.start();
    expect(await run()).toMatchObject({ reason: "sender_restricted" });
    world.network.people.set("99", person("99"));
    await world.list("99");
    world.network.answers.push(undefined, ...row.map(() => "not_permitted" as const));
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: row.length });
    expect(await run()).toMatchObject({ reason: "completed", sent: 0, failed: 0 });
    expect(announced).toHaveLength(1);
  });
});

describe("a recipient who was refused once", () => {
  test("is tried last after an allowed retry", async () => {
    await using world = await openOutreach("10", "11");
    world.network.answers.push("not_permitted", { stop: "credits_depleted" });
    const { run } = await world.start();
    await run();
    await world.append([retry("10")]);
    expect(await run()).toMatchObject({ sent: 2 });
    expect(reached(world)).toEqual(["11", "10"]);
  });

  test("is listed last by a dry run", async () => {
    await using world = await openOutreach("10", "11");
    world.network.answers.push({ stop: "sender_restricted" });
    const { run } = await world.start();
    await run();
    const { preview } = await run({ dryRun: true });
    expect(preview?.would_send.map(({ recipient }) => recipient.id)).toEqual(["11", "10"]);
  });
});
