// Appends, reads, archives, verifies and closes. Then waits until threads that it has started end by themselves. Runs
// on any runtime.
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

/** Starts a thread of the store, sends it a request to close, and returns how the thread ended. */
function endOf(thread: string, workerData: unknown, request: unknown, isStarted: boolean): Promise<string> {
  const worker = new Worker(new URL(`../../src/sqlite/${thread}/${thread}-thread.ts`, import.meta.url), { workerData });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  if (isStarted) worker.once("message", () => worker.postMessage(request));
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  else worker.postMessage(request);
  return new Promise((resolve) => {
    worker.once("error", (fault: Error) => resolve(`${thread}: ${fault.message}`));
    worker.once("exit", (code) => resolve(`${thread}: ended with ${code}`));
  });
}

const limits = { databaseBytesMax: 2 ** 40, pollMs: 100, eventBytesMax: 2 ** 18, writerTransform: undefined };
console.log(await endOf("writer", { file, ...limits }, { kind: "close" }, true));
console.log(await endOf("verify", { file }, { task: "close" }, false));
