// Folds a part of a rebuild, and keeps the work; started by replay.ts.
import { parentPort, workerData } from "node:worker_threads";
import { openExistingLog } from "../shared/log-session.ts";
import type { ThreadOrder } from "../replay.ts";
import { foldPart } from "./rebuild.ts";

const { env, ...order } = workerData as ThreadOrder;
const interrupt = new AbortController();
parentPort?.once("message", () => interrupt.abort());
await using store = await openExistingLog({ env });
await foldPart(store, order, { signal: interrupt.signal, onBegin() {}, onProgress() {} });
parentPort?.close();
