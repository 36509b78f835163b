import { group } from "./command.ts";
import { preview } from "./outreach/preview.ts";
import { reconcile } from "./outreach/reconcile.ts";
import { stop } from "./outreach/stop.ts";
import { watch } from "./outreach/watch.ts";

export const outreach = group(
  "outreach",
  "preview a run, watch or stop one, settle messages in doubt",
  [preview, watch, stop, reconcile],
  "All of them work beside a running service. Runs are started by POST /social/run.",
);
