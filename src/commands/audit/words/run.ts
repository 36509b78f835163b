import type { DataOf } from "../../../../events/catalog.ts";
import type { PauseReason, Usage } from "../../../../events/outreach.ts";
import { plain, quoted } from "./phrases.ts";

/** What is told of a run as a whole. */
export const RUN_WORDS = {
  RunStarted: ({ run_id, dry_run }: DataOf<"RunStarted">) => `${dry_run ? "dry run" : "run"} ${run_id} started`,
  RunPaused: ({ run_id, reason, until }: DataOf<"RunPaused">) =>
    `run ${run_id} waited until ${until}, ${PAUSES[reason]}`,
  InboxRead: ({ run_id, messages, newest_id }: DataOf<"InboxRead">) =>
    `run ${run_id} read ${messages} messages of our conversations${newest_id === undefined ? "" : `, all up to ${newest_id}`}`,
  SourceRead: ({ run_id, source, scope, people, next }: DataOf<"SourceRead">) =>
    `run ${run_id} worked off ${people} people of the source ${plain(source)}, ${quoted(scope)}${next === undefined ? ", to its end" : ""}`,
  RunFinished: ({ run_id, reason, usage, ...counts }: DataOf<"RunFinished">) =>
    `run ${run_id} ended, ${plain(reason)}: ${counted(counts)}${charged(usage)}`,
  RunAbandoned: ({ run_id, ...counts }: DataOf<"RunAbandoned">) =>
    `run ${run_id}, whose process had died, was closed: ${counted(counts)}`,
  RunRefused: ({ reason, day, used }: DataOf<"RunRefused">) =>
    `a run was refused, ${plain(reason)}: ${used} used on ${day}`,
  DryRunFinished: ({ run_id, reason, would_send, would_skip, usage }: DataOf<"DryRunFinished">) =>
    `dry run ${run_id} ended, ${plain(reason)}: it would send to ${would_send} and skip ${would_skip}${charged(usage)}`,
};

const PAUSES: Readonly<Record<PauseReason, string>> = {
  pace: "to spread the messages",
  rate_limited: "as the network asked",
  network_unavailable: "since the network gave no answer",
  settling: "for the network to show a message that is in doubt",
};

function charged(usage: Usage | undefined): string {
  return usage === undefined ? "" : `; the network charges at most ${usage.usd} USD`;
}

type Counts = Pick<DataOf<"RunFinished">, "sent" | "skipped" | "failed" | "in_doubt">;

function counted({ sent, skipped, failed, in_doubt }: Counts): string {
  return `${sent} sent, ${skipped} skipped, ${failed} failed, ${in_doubt} in doubt`;
}
