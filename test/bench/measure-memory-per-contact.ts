/** Folds the contacts of a log and prints how many there are and the memory of each, in bytes. Argument: FILE. */
import { heapStats } from "bun:jsc";
import { openSqliteStore } from "eventstore-lite";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { foldLog } from "../harness/fold-log.ts";

const [file = ""] = process.argv.slice(2);
await using store = await openSqliteStore<Event>({ file, codec });
// Folds a part of the log before the measurement, so that the code is compiled and the store has allocated its buffers.
await foldLog(store, ["contacts"], { to: 10_000 });
const before = usedBytes();
const { states } = await foldLog(store, ["contacts"]);
const bytes = usedBytes() - before;
const { size } = states.contacts.people;
console.log(JSON.stringify({ recipients: size, bytesEach: bytes / size }));

function usedBytes(): number {
  for (let times = 0; times < 3; times++) Bun.gc(true);
  const { heapSize, extraMemorySize } = heapStats();
  return heapSize + extraMemorySize;
}
