import { peerBenches, storeBenches, runBenches } from "eventstore-lite/bench";
import { campaigns } from "./campaigns.ts";
import { apiReads, consolePages } from "./console-pages.ts";
import { drainIntake } from "./drain-intake.ts";
import { drainMemory } from "./drain-memory.ts";
import { drain } from "./drain.ts";
import { eventStreams } from "./event-streams.ts";
import { growth } from "./replay-growth.ts";
import { hotLink } from "./hot-link.ts";
import { intakePostgres } from "./intake-postgres.ts";
import { intake } from "./intake.ts";
import { metrics } from "./metrics.ts";
import { tree } from "./merkle-tree.ts";
import { moment } from "./past-state.ts";
import { outbox } from "./outbox.ts";
import { redirect } from "./redirect.ts";
import { replayStats } from "./replay-stats.ts";
import { replay } from "./replay.ts";
import { encrypt } from "./encrypted-intake.ts";
import { stalls } from "./stalls.ts";
import { start } from "./start-time.ts";
import { statsRead } from "./stats-read.ts";
import { tokenTiming } from "./token-timing.ts";
import { traces } from "./traces.ts";
import { webhooks } from "./webhooks.ts";

const benches = {
  intake,
  "intake-postgres": intakePostgres,
  "hot-link": hotLink,
  redirect,
  "event-streams": eventStreams,
  encrypt,
  metrics,
  tree,
  traces,
  ...storeBenches,
  replay,
  "replay-stats": replayStats,
  moment,
  start,
  growth,
  drain,
  "drain-intake": drainIntake,
  "drain-memory": drainMemory,
  "token-timing": tokenTiming,
  "console-pages": consolePages,
  "api-reads": apiReads,
  campaigns,
  stalls,
  "stats-read": statsRead,
  webhooks,
};

await runBenches(benches, { ...peerBenches, outbox }, process.argv.slice(2));
