import { join } from "node:path";
import { openSqliteStore } from "eventstore-lite";
import { atLeast, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench/measure";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import { CLIENT, postClicks, type LoadResult } from "./post-clicks.ts";
import { startService, startWithout } from "./server.ts";

/** Visitors of a busy day, in turn. */
const ADDRESSES = 20_000;

/** More than the service holds leaf keys of, in turn: each click wants a new one. */
const NEW_ADDRESSES = 100_000;

/** The intake with sealing against the same service without it: clicks of one address, of many, and of ever new ones. */
export const encrypt: Bench = async (options) => {
  const seconds = options.quick ? 2 : 4;
  const [sealedLog, openLog] = ["sealed.sqlite", "open.sqlite"].map((name) => join(options.directory, name)) as [
    string,
    string,
  ];
  const loads = await (async () => {
    await using encrypted = await startService(sealedLog);
    await using open = await startWithout("sealing", openLog);
    return await interleave(roundsOf(options), {
      open: () => postClicks(open.url, seconds),
      encrypted: () => postClicks(encrypted.url, seconds),
      openMany: () => postClicks(open.url, seconds, ADDRESSES),
      sealedMany: () => postClicks(encrypted.url, seconds, ADDRESSES),
      openNew: () => postClicks(open.url, seconds, NEW_ADDRESSES),
      sealedNew: () => postClicks(encrypted.url, seconds, NEW_ADDRESSES),
    });
  })();
  if ((await isSealed(openLog)) || !(await isSealed(sealedLog))) throw new Error("the logs are not as they are meant");
  options.note(`the client is ${CLIENT}`);
  const row = (what: string, ours: readonly LoadResult[], limit: readonly LoadResult[]) =>
    compare(what, "/s", ours.map(perSecond), limit.map(perSecond), atLeast(0.8));
  return [
    row("sealed intake, one address; limit: without sealing", loads.encrypted, loads.open),
    row(`sealed intake, ${ADDRESSES} addresses; limit: without sealing`, loads.sealedMany, loads.openMany),
    row("sealed intake, each address new; limit: without sealing", loads.sealedNew, loads.openNew),
  ];
};

function perSecond(load: LoadResult): number {
  return load.perSecond;
}

async function isSealed(file: string): Promise<boolean> {
  await using store = await openSqliteStore({ file });
  for await (const { data } of store.read({ types: ["LinkClicked"], limit: 1 }))
    return ciphertextOf(data) !== undefined;
  return false;
}
