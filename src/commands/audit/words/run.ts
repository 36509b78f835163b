import type { DataOf } from "../../../../events/catalog.ts";
import { plain } from "./phrases.ts";

/** What is told of a run as a whole. */
export const RUN_WORDS = {
  RunStarted: ({ run_id, dry_run }: DataOf<"RunStarted">) => `${dry_run ? "dry run" : "run"} ${run_id} started`,
  RunFinished: ({ run_id, reason, ...counts }: DataOf<"RunFinished">) =>
    `run ${run_id} ended, ${plain(reason)}: ${counted(counts)}`,
  RunAbandoned: ({ run_id, ...counts }: DataOf<"RunAbandoned">) =>
    `run ${run_id}, whose process had died, was closed: ${counted(counts)}`,
  RunRefused: ({ reason, day, used }: DataOf<"RunRefused">) =>
    `a run was refused, ${plain(reason)}: ${used} used on ${day}`,
  DryRunFinished: ({ run_id, reason, would_send, would_skip }: DataOf<"DryRunFinished">) =>
    `dry run ${run_id} ended, ${plain(reason)}: it would send to ${would_send} and skip ${would_skip}`,
};

type Counts = Pick<DataOf<"RunFinished">, "sent" | "skipped" | "failed" | "in_doubt">;

function counted({ sent, skipped, failed, in_doubt }: Counts): string {
  return `${sent} sent, ${skipped} skipped, ${failed} failed, ${in_doubt} in doubt`;
}
