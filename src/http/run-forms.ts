import { dryRunPage } from "../console/dry-run.tsx";
import { formOf } from "./console-form.ts";
import { startRun } from "./run.ts";
import { stopRun } from "./stop-run.ts";

export const dryRunByForm = formOf(startRun, {
  id: "dryRunByForm",
  body: () => ({ dry_run: true }),
  page: dryRunPage,
});

/** Does not wait for the run's end: the overview shows how it goes. */
export const startRunByForm = formOf(startRun, { body: () => ({}), says: () => "The run has started." });

export const stopRunByForm = formOf(stopRun, {
  body: ({ run_id }) => ({ run_id }),
  says: () => "The run is asked to stop: it sends nothing more.",
});
