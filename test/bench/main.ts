import { peerBenches, storeBenches } from "eventstore-lite/bench/benches";
import { runBenches } from "eventstore-lite/bench/command";
import { growth } from "./growth.ts";
import { intake } from "./intake.ts";
import { replayStats } from "./replay-stats.ts";
import { replay } from "./replay.ts";
import { start } from "./start.ts";
import { statsRead } from "./stats-read.ts";

const benches = {
  intake,
  ...storeBenches,
  replay,
  "replay-stats": replayStats,
  start,
  growth,
  // The last: it appends to the largest log, which the others share.
  "stats-read": statsRead,
};

await runBenches(benches, peerBenches, process.argv.slice(2));
