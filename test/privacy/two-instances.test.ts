// On the memory harness.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing/postgres-server";
import type { Event } from "../../events/catalog.ts";
import { findPerson } from "../../projections/contacts.ts";
import type { LogConfig } from "../../src/config/log.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { locateLog } from "../../src/service/log-place.ts";
import { openLogAt } from "../../src/service/open.ts";
import { secret } from "../../src/platform/secret.ts";
import { createEraseHandler } from "../../src/privacy/retention.ts";
import { forgetAddress, forgetPerson } from "../../src/privacy/forget.ts";
import { startProjector } from "../../src/projector/projector.ts";
import { temporaryFolder } from "../harness/temporary.ts";
import { clickOf } from "../harness/memory/new-events.ts";

const ANN = { id: "1001", username: "ann_builds" };
const [HERS, OTHER] = ["203.0.113.7", "203.0.113.8"];

const inFile = async (stack: AsyncDisposableStack): Promise<LogConfig> => {
  const folder = stack.use(temporaryFolder());
  return { kind: "sqlite", file: folder.file("log.sqlite") };
};
const onServer = async (): Promise<LogConfig> => {
  const database = { url: secret(await newDatabase()), shown: "postgres://localhost/test" };
  return { kind: "postgres", ...database, keys: database };
};

async function openInstance(stack: AsyncDisposableStack, log: LogConfig) {
  const place = locateLog({ log, key: secret("01".repeat(32)) } as Parameters<typeof locateLog>[0]);
  const store = stack.use(await openLogAt(place));
  const projector = stack.use(await startProjector(store, { erase: createEraseHandler(store.keyring) }));
  const eventLog = createEventLog(store, () => Bun.randomUUIDv7());
  return { store, projector, eventLog, encryptedLog: store, hashesOf: () => ["hash"] };
}

const isErased = ({ meta }: Event): boolean => meta.erased === true;

test.each([
  ["in a file", inFile],
  ["on a server", onServer],
])("%s, what one instance forgets no other opens or knows, and it stays so", async (_name, where) => {
  await using stack = new AsyncDisposableStack();
  const log = await where(stack);
  const [here, there] = [await openInstance(stack, log), await openInstance(stack, log)];
  const imported = { recipient: ANN, name: "Ann Bell", basis: "opt_in", fields: {}, source: "list" } as const;
  await here.eventLog.append(STREAMS.outreach, [{ type: "RecipientAdded", data: imported }], {});
  await here.eventLog.append("links", [clickOf({ ip: HERS, channels: [] })], {});
  const { last } = await there.eventLog.append("links", [clickOf({ ip: OTHER, channels: [] })], {});
  await there.projector.until(last);
  expect(findPerson(there.projector.state("contacts"), ANN)?.name).toBe("Ann Bell");
  expect((await Array.fromAsync(there.store.read())).some(isErased)).toBe(false);

  const options = { metadata: {}, signal: new AbortController().signal };
  await forgetPerson(here, (contacts) => findPerson(contacts, ANN), options);
  await forgetAddress(here, HERS, options);
  await there.projector.until((await here.store.head()).position);
  expect(findPerson(there.projector.state("contacts"), ANN)).toBeUndefined();
  const read = await Array.fromAsync(there.store.read());
  expect(read.slice(0, 3).map(isErased)).toEqual([true, true, false]);

  // Also what comes later, by either of them.
  for (const { eventLog } of [here, there]) {
    await eventLog.append(STREAMS.outreach, [{ type: "RecipientAdded", data: imported }], {});
  }
  for (const { store } of [here, there]) {
    const last = await Array.fromAsync(store.read({ backwards: true, limit: 2 }));
    expect(last.map(isErased)).toEqual([true, true]);
  }
  expect(there.store.keyring.isForgotten(ANN)).toBe(true);
});
