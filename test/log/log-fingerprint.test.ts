// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { fingerprintLog } from "../../src/log/log-fingerprint.ts";
import { postgresStore, sqliteStore, type StorePlace } from "../../src/log/store-backends.ts";
import { secret } from "../../src/platform/secret.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";

async function expectIdentified(place: StorePlace): Promise<string> {
  expect(await place.identify()).toBeUndefined();
  const opened = await (async () => {
    await using store = await place.open();
    // Identifies the place of the log while the log is open. Below, it is identified once more after the log was
    // closed.
    expect(await place.identify()).toEqual({ id: store.id, epoch: store.epoch });
    return fingerprintLog(store);
  })();
  expect(fingerprintLog((await place.identify())!)).toBe(opened);
  await place.beginEpoch("operator", "a test");
  expect(fingerprintLog((await place.identify())!)).not.toBe(opened);
  return opened;
}

test("a fingerprint differs between logs and between epochs of one log", async () => {
  const url = await newDatabase();
  const prints = [
    await expectIdentified(sqliteStore(newLogFile())),
    await expectIdentified(postgresStore({ url: secret(url), shown: "the test's server" })),
  ];
  expect(new Set(prints).size).toBe(2);
});
