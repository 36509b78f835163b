// Program that rebuilds the projections of a log. After its work was saved twice it prints its position and waits to be
// killed. Argument: the log's file.
import { openSqliteStore } from "eventstore-lite";
import { codec, type Event } from "../../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES } from "../../../projections/all.ts";
import { rebuild } from "../../../src/log/rebuild-projections.ts";

const KEEP_EVERY = 1_000;

const store = await openSqliteStore<Event>({ file: process.argv[2] ?? "", codec });
await rebuild(store, PROJECTION_NAMES, {
  restart: false,
  metadata: { caller: "test" },
  signal: new AbortController().signal,
  saveEveryPositions: KEEP_EVERY,
  onBegin() {},
  onProgress(position) {
    if (position <= 2 * KEEP_EVERY) return;
    process.stdout.write(`${position}\n`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  },
});
