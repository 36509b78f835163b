import { group } from "./command.ts";
import { preview } from "./outreach/preview.ts";
import { reconcile } from "./outreach/reconcile.ts";
import { run } from "./outreach/run.ts";
import { stop } from "./outreach/stop.ts";
import { watch } from "./outreach/watch.ts";

export const outreach = group(
  "outreach",
  "preview, start, watch or stop a run, settle what is in doubt",
  [preview, run, watch, stop, reconcile],
  "All of them work beside a running service, which makes the runs.",
);
