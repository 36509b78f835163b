import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { contacts, findContact, type Contacts } from "../../projections/contacts.ts";
import type { Recipient } from "../../events/outreach.ts";
import { deriveKey } from "../../src/account/key.ts";
import { recipients } from "../../src/commands/recipients.ts";
import { STREAMS, type Fact } from "../../src/journal.ts";
import { createMarks } from "../../src/outreach/marks.ts";
import { openCommandWorld, type CommandWorld } from "./command-world.ts";

const KEY = new Uint8Array(32).fill(9);

const marks = createMarks(deriveKey(KEY, "suppression"));

const ANN = { id: "101", username: "ann" };
const RENAMED = { id: "101", username: "ann_b" };

let world: CommandWorld;
beforeEach(async () => {
  world = await openCommandWorld(undefined, { REACHLOG_KEY: Buffer.from(KEY).toString("base64") });
});
afterEach(() => world[Symbol.asyncDispose]());

async function state(): Promise<Contacts> {
  const folded = contacts.initial();
  for await (const event of world.store.read({})) contacts.evolve(folded, event);
  return folded;
}

async function lastMarks(): Promise<readonly string[]> {
  for await (const { data } of world.store.read({ types: ["RecipientSuppressed"], backwards: true, limit: 1 })) {
    return "marks" in data ? (data.marks ?? []) : [];
  }
  return [];
}

const imported = (recipient: Recipient): Fact => ({
  type: "RecipientAdded",
  data: { recipient, basis: "dm_first", fields: {}, source: "list" },
});

describe("recipients suppress", () => {
  test("marks every name that is known of the person", async () => {
    await world.append(STREAMS.outreach, [imported(ANN)]);
    expect(await world.run(recipients, "suppress", "@Ann")).toMatchObject({ code: 0 });
    expect(new Set(await lastMarks())).toEqual(new Set(marks(ANN)));
  });

  test("marks the handle of somebody who is not known", async () => {
    await world.append(STREAMS.outreach, [imported({ id: "102" })]);
    expect(await world.run(recipients, "suppress", "ann")).toMatchObject({ code: 0 });
    expect(await lastMarks()).toEqual([...marks({ username: "ann" })]);
  });

  test("by a handle that the person had before is of that person, by all their names", async () => {
    await world.append(STREAMS.outreach, [imported(ANN), imported(RENAMED)]);
    expect(await world.run(recipients, "suppress", "ann")).toMatchObject({ code: 0 });
    expect(new Set(await lastMarks())).toEqual(new Set([...marks(RENAMED), ...marks(ANN)]));
    expect(findContact(await state(), { id: "101" })).toMatchObject({ suppressed: true });
  });
});

test("recipients retry by a handle that the person had before opens that person again", async () => {
  const attempt = { attempt_id: "a", run_id: "r", recipient: ANN };
  await world.append(STREAMS.outreach, [
    { type: "DirectMessageAttempted", data: { ...attempt, text: "Hi", variant: "A", day: "2025-11-20" } },
    {
      type: "DirectMessageFailed",
      data: { ...attempt, reason: "recipient_closed", detail: "", frees_quota: true, retry: false },
    },
    imported(RENAMED),
  ]);
  expect(await world.run(recipients, "retry", "ann")).toMatchObject({ code: 0 });
  expect(findContact(await state(), { id: "101" })).toMatchObject({ status: "open", again: true });
  expect(await world.run(recipients, "retry", "ann")).toMatchObject({ code: 1 });
});
