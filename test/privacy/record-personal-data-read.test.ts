// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { findPerson } from "../../projections/contact-identity.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { forgetPerson } from "../../src/privacy/forget-person-or-address.ts";
import { appendRead } from "../../src/privacy/record-personal-data-read.ts";
import { ENGINES, openInstance } from "../harness/in-process/open-one-of-several-instances.ts";

const PEOPLE = [{ id: "1001", username: "ann_builds" }, { username: "ann_builds" }, { id: "1001" }];
const BEA = { username: "bea_codes" };

const CASES = ENGINES.flatMap(([name, where]) => PEOPLE.map((person) => [name, person, where] as const));

test.each(CASES)(
  "with a log %s, forgetting %j erases the recorded reads about that recipient only",
  async (_name, person, where) => {
    await using stack = new AsyncDisposableStack();
    const instance = await openInstance(stack, await where(stack));
    const { eventLog, store } = instance;
    const added = { basis: "opt_in", fields: {}, source: "list" } as const;
    for (const recipient of [person, BEA]) {
      const data = { recipient, ...added };
      await eventLog.append(STREAMS.outreach, [{ type: "RecipientAdded", data }], {});
      await appendRead(eventLog.append, { resource: "recipient", recipient }, { caller: "web" });
    }
    await appendRead(eventLog.append, { resource: "overview" }, { caller: "web" });

    await forgetPerson(instance, (contacts) => findPerson(contacts, person), {
      metadata: {},
      signal: new AbortController().signal,
    });
    const reads = await Array.fromAsync(store.read({ types: ["PersonalDataRead"] }));
    expect(reads.map(({ data, meta }) => [data, meta.erased ?? false])).toEqual([
      [{ resource: "recipient", recipient: expect.objectContaining({ id: expect.stringMatching(/^erased:/) }) }, true],
      [{ resource: "recipient", recipient: BEA }, false],
      [{ resource: "overview" }, false],
    ]);
    expect(findPerson(instance.projector.state("contacts"), BEA)?.reads).toHaveLength(1);
  },
);
