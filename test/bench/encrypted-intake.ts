import { join } from "node:path";
import { openSqliteStore } from "eventstore-lite";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { ciphertextOf } from "../../events/divide-and-encrypt-personal-data.ts";
import { CLIENT, postClicks, type LoadResult } from "./post-clicks.ts";
import { startUnchanged, startWithout } from "./start-service-process.ts";

/** Number of visitors' addresses of a busy day, used in turn. */
const ADDRESSES = 20_000;

/**
 * Number of visitors' addresses, used in turn. The service caches encryption keys for fewer addresses, so each click
 * needs a new key.
 */
const NEW_ADDRESSES = 100_000;

/**
 * Measures the intake with encryption and without it, for clicks from one address, from many addresses, and from a new
 * address each time.
 */
export const encrypt: Bench = async (options) => {
  const seconds = options.quick ? 2 : 4;
  const [encryptedLog, openLog] = ["encrypted.sqlite", "open.sqlite"].map((name) => join(options.directory, name)) as [
    string,
    string,
  ];
  const loads = await (async () => {
    await using encrypted = await startUnchanged(encryptedLog);
    await using open = await startWithout("encryption", openLog);
    return await interleave(roundsOf(options), {
      open: () => postClicks(open.url, seconds),
      encrypted: () => postClicks(encrypted.url, seconds),
      openMany: () => postClicks(open.url, seconds, ADDRESSES),
      encryptedMany: () => postClicks(encrypted.url, seconds, ADDRESSES),
      openNew: () => postClicks(open.url, seconds, NEW_ADDRESSES),
      encryptedNew: () => postClicks(encrypted.url, seconds, NEW_ADDRESSES),
    });
  })();
  if ((await isEncrypted(openLog)) || !(await isEncrypted(encryptedLog)))
    throw new Error("the logs are not as they are meant");
  options.note(`the client is ${CLIENT}`);
  const row = (what: string, ours: readonly LoadResult[], limit: readonly LoadResult[]) =>
    compare(what, "/s", ours.map(perSecond), limit.map(perSecond), atLeast(0.8));
  return [
    row("encrypted intake, one address; limit: without encryption", loads.encrypted, loads.open),
    row(`encrypted intake, ${ADDRESSES} addresses; limit: without encryption`, loads.encryptedMany, loads.openMany),
    row("encrypted intake, each address new; limit: without encryption", loads.encryptedNew, loads.openNew),
  ];
};

function perSecond(load: LoadResult): number {
  return load.perSecond;
}

async function isEncrypted(file: string): Promise<boolean> {
  await using store = await openSqliteStore({ file });
  for await (const { data } of store.read({ types: ["LinkClicked"], limit: 1 }))
    return ciphertextOf(data) !== undefined;
  return false;
}
