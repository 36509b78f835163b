import { openSqliteStore } from "../src/index.ts";
import { longLog } from "./make-long-log.ts";
import { compare, interleave, perSecond, roundsOf, type Bench } from "./compare-contenders.ts";
import { openScan } from "./raw-row-scan.ts";

/** Benchmark of reading the whole log, once with whole events and once with only the parts that a fold needs. */
export const read: Bench = async (options) => {
  const { file, events } = await longLog(options);
  await using store = await openSqliteStore({ file });
  const numbers = ["position", "stream", "version", "type", "time"];
  using whole = openScan(file, [...numbers, "id", "hash"], ["data", "meta"]);
  using folded = openScan(file, ["position", "version", "type", "time"], ["data"]);
  const rates = await interleave(roundsOf(options), {
    read: () => perSecond(events, async () => expectEvents(await countEach(store.read()), events)),
    wholeScan: () => perSecond(events, () => expectEvents(whole.run(), events)),
    readFolded: () => perSecond(events, async () => expectEvents(await countBatches(store.readFolded()), events)),
    foldedScan: () => perSecond(events, () => expectEvents(folded.run(), events)),
  });
  return [
    compare("read, whole events; limit: scan + JSON.parse of data and meta", "/s", rates.read, rates.wholeScan),
    compare("readFolded; limit: scan + JSON.parse of data", "/s", rates.readFolded, rates.foldedScan),
  ];
};

async function countEach(events: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of events) count++;
  return count;
}

async function countBatches(batches: AsyncIterable<readonly unknown[]>): Promise<number> {
  let count = 0;
  for await (const batch of batches) count += batch.length;
  return count;
}

function expectEvents(count: number, wanted: number): void {
  if (count !== wanted) throw new Error(`${count} events were read instead of ${wanted}`);
}
