import { group } from "./command.ts";
import { preview } from "./outreach/preview.ts";
import { reconcile } from "./outreach/reconcile.ts";
import { watch } from "./outreach/watch.ts";

export const outreach = group(
  "outreach",
  "preview a run, watch one, settle messages in doubt",
  [preview, watch, reconcile],
  "All of them work beside a running service. Runs are started by POST /social/run.",
);
