import { Counter, type Registry } from "prom-client";
import { runEnd } from "../../events/outreach.ts";
import type { Projector } from "../projector/projector.ts";
import { lookUp } from "./figures.ts";

export interface OutreachSources {
  readonly projector: Projector;
  readonly quota: { readonly limit: number; readonly used: () => number };
}

/** An end that no run says of itself: its process died. */
const ABANDONED = "abandoned";

/** The account, the day's quota and the run, by the log. */
export function observeOutreach(registry: Registry, { projector, quota }: OutreachSources): void {
  const run = () => projector.state("run");
  const account = () => projector.state("account");
  const figures: readonly (readonly [name: string, help: string, read: () => number | boolean])[] = [
    ["reachlog_quota_limit", "Messages that may be sent on one day.", () => quota.limit],
    ["reachlog_quota_used", "Messages of today, those in doubt included.", quota.used],
    ["reachlog_run_running", "1 while a run is in progress.", () => run().current !== null],
    [
      "reachlog_run_waiting",
      "1 while it waits, such as for a rate limit.",
      () => (run().current?.waiting ?? null) !== null,
    ],
    [
      "reachlog_messages_in_doubt",
      "Messages in doubt: it is not known yet whether they were sent.",
      () => [...run().open.values()].filter(({ in_doubt }) => in_doubt).length,
    ],
    ["reachlog_account_linked", "1 once an account was linked.", () => account().user !== null],
    ["reachlog_account_authorized", "1 while the account's grant is good.", () => account().authorized],
  ];
  for (const [name, help, read] of figures) lookUp(registry, name, help, () => Number(read()));

  const ended = new Counter({
    name: "reachlog_runs_ended_total",
    help: "Runs that ended while this process ran, by reason; dry runs are not counted.",
    labelNames: ["reason"],
    registers: [registry],
  });
  // From the start on: of a figure that begins at 1, Prometheus sees no increase.
  for (const reason of [...runEnd.anyOf.map((end) => end.const), ABANDONED]) ended.inc({ reason }, 0);
  projector.listen(({ type, data }) => {
    if (type === "RunFinished") ended.inc({ reason: data.reason });
    else if (type === "RunAbandoned") ended.inc({ reason: ABANDONED });
  });
}
