// This file runs in a worker thread, which fold-in-worker.ts starts: it folds a part of a rebuild, and stores the work.
import { parentPort, workerData } from "node:worker_threads";
import { loadConfig } from "../config/config.ts";
import { readSettingsFile } from "../config/load-env-file.ts";
import { foldPart } from "../log/rebuild-projections.ts";
import { refuseNoLog } from "../privacy/locate-log.ts";
import { openLog } from "../privacy/open-log.ts";
import type { ThreadOrder } from "./fold-in-worker.ts";

const { env, ...order } = workerData as ThreadOrder;
const interrupt = new AbortController();
parentPort?.once("message", () => interrupt.abort());
const config = loadConfig(env, readSettingsFile);
await refuseNoLog(config);
await using store = await openLog(config);
await foldPart(store, order, { signal: interrupt.signal, onBegin() {}, onProgress() {} });
parentPort?.close();
