import { peerBenches, storeBenches, runBenches } from "eventstore-lite/bench";
import { campaigns } from "./cost-of-campaigns.ts";
import { apiReads, consolePages } from "./console-pages-and-api-reads.ts";
import { drainIntake } from "./click-intake-while-backlog-drains.ts";
import { drainMemory } from "./drain-memory.ts";
import { drain } from "./deliver-click-backlog.ts";
import { eventStreams } from "./click-intake-with-event-streams.ts";
import { growth } from "./replay-growth.ts";
import { hotLink } from "./clicks-on-one-link-of-many.ts";
import { intakePostgres } from "./click-intake-on-postgres.ts";
import { intake } from "./click-intake.ts";
import { metrics } from "./metrics-overhead.ts";
import { tree } from "./click-intake-with-merkle-tree.ts";
import { moment } from "./past-state.ts";
import { outbox } from "./accept-and-deliver-clicks.ts";
import { redirect } from "./redirect.ts";
import { replayStats } from "./replay-one-and-all-projections.ts";
import { replay } from "./replay.ts";
import { encrypt } from "./encrypted-intake.ts";
import { stalls } from "./request-thread-stalls.ts";
import { start } from "./start-time.ts";
import { statsRead } from "./stats-read.ts";
import { tokenTiming } from "./token-timing.ts";
import { traces } from "./tracing-overhead.ts";
import { webhooks } from "./deliver-to-webhooks.ts";

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
