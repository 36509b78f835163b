// Appends, reads, archives, verifies, closes and appends again; then lets a thread end by itself, for which no store
// waits. For any runtime.
import { Worker } from "node:worker_threads";
import { openSqliteStore } from "eventstore-lite";

const [file = ""] = process.argv.slice(2);

const store = await openSqliteStore({ file });
await store.append("a", [{ id: "1", type: "T", data: { n: 1 }, meta: {} }]);
for await (const { position, data } of store.read()) console.log(`read ${position} ${JSON.stringify(data)}`);
// Events so large that their segment is proved in another thread.
const large = Array.from({ length: 4 }, (_, index) => ({
  id: `large ${index}`,
  type: "T",
  data: Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))).toString("base64"),
  meta: {},
}));
for (let round = 0; round < 2; round += 1) await store.append("a", large);
for await (const { first, last } of store.archive({ to: 8 })) console.log(`archived ${first} to ${last}`);
for await (const { position, data } of store.read({ to: 1 })) console.log(`read ${position} ${JSON.stringify(data)}`);
console.log(`verified ${(await store.verify()).ok}`);
await store[Symbol.asyncDispose]();
console.log("closed");

// The second store takes the thread of the first, which then waits for a third and keeps no process alive.
{
  await using again = await openSqliteStore({ file });
  await again.append("a", [{ id: "2", type: "T", data: {}, meta: {} }]);
  console.log(`appended ${(await again.head()).position}`);
}

/** Starts the thread that verifies, sends it a request to close, and returns how the thread ended. */
function endOfVerifier(): Promise<string> {
  const worker = new Worker(new URL("../../src/sqlite/verify/verify-thread.ts", import.meta.url), {
    workerData: { file },
  });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  worker.postMessage({ task: "close" });
  return new Promise((resolve) => {
    worker.once("error", (fault: Error) => resolve(`verify: ${fault.message}`));
    worker.once("exit", (code) => resolve(`verify: ended with ${code}`));
  });
}

console.log(await endOfVerifier());
