import { availableParallelism } from "node:os";
import { createLogTree, type EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { PROJECTION_NAMES, type ProjectionName } from "../../projections/all.ts";
import { Command, Option, type MakeCommand } from "./shared/command.ts";
import { answerEach, EXIT, type Terminal } from "./shared/terminal.ts";
import { openExistingLog } from "./shared/log-session.ts";
import { startProgress, type Progress } from "./shared/progress.ts";
import { askWhatIf } from "./replay/what-if.ts";
import { rebuild, type PartOrder, type Rebuilt, type RebuildOptions } from "./replay/rebuild.ts";
import { printable } from "./shared/table.ts";
import { once } from "node:events";
import { Worker } from "node:worker_threads";

export const replay: MakeCommand = (terminal, exit) =>
  new Command("replay")
    .summary("rebuild projections from the log and say what changed")
    .description(
      `Folds the log again from its first event, in one pass for all projections and in a
process of its own: a service keeps running, and loads the new states when they are
ready. Compares each with its stored snapshot, at the snapshot's own position. Exit
code 1 if something differed, which is then corrected. Without --projection it also
rebuilds the tiles of the log's Merkle tree.

With --what-if it rebuilds nothing: it decides all runs of the log again by the
rules of a JSON file, such as {"DAILY_LIMIT": 20, "SEND_WINDOW": null}, and shows
what would differ. Rules have the names and values of settings; a rule that is
not named stays as it was. BOT_RULE (lists or none) and BOT_USER_AGENTS (words)
count clicks otherwise. Replies and clicks of messages that never left are
unknown.

Interrupted, it exits 75 (unless it is killed), and the next replay resumes from
the last saved work.`,
    )
    .addOption(new Option("--projection <name>", "only this one").choices(PROJECTION_NAMES))
    .option("--restart", "begin at the first event, whatever an earlier replay has kept")
    .addOption(
      new Option("--what-if <file>", "show what other rules would have done").conflicts(["projection", "restart"]),
    )
    .option("--json", "answer with one JSON object for each projection, or for what if")
    .addHelpText("after", "\nExamples:\n  reachlog replay --projection stats\n  reachlog replay --what-if rules.json")
    .action(
      exit(async ({ projection, restart, whatIf, json }) => {
        if (whatIf !== undefined) return askWhatIf(terminal, whatIf, json);
        const names = projection === undefined ? PROJECTION_NAMES : [projection];
        await using store = await openExistingLog(terminal);
        const shown = show(terminal, names);
        const { signal } = terminal;
        const env = { ...terminal.env };
        const inWorker: RebuildOptions["foldInWorker"] = (order, ended) => foldInWorker({ env, ...order }, ended);
        const rebuilt = await rebuild(store, names, {
          restart: restart === true,
          signal,
          foldInWorker: availableParallelism() > 1 ? inWorker : undefined,
          ...shown,
        });
        shown.end();
        if (rebuilt === undefined) {
          terminal.err("interrupted; the next replay resumes from here\n");
          return EXIT.temporary;
        }
        if (projection === undefined) await rebuildTree(store, terminal);
        answerEach(terminal, json, rebuilt, rebuilt.map(formatReport).join(""));
        return rebuilt.every(({ differences }) => (differences ?? []).length === 0) ? EXIT.ok : EXIT.fault;
      }),
    );

/** The tiles of the log's Merkle tree are computed from it, as projections are. */
async function rebuildTree(store: EventStore<Event>, { signal }: Terminal): Promise<void> {
  const tree = createLogTree(store);
  const { position } = await store.head();
  await tree.forget();
  while (!(await tree.extend(position)) && !signal.aborted);
}

function show(terminal: Terminal, names: readonly ProjectionName[]) {
  let progress: Progress | undefined;
  return {
    onBegin(from: number, to: number): void {
      if (from > 0) terminal.err(`going on from position ${from}, where an earlier replay was interrupted\n`);
      progress = startProgress(terminal, names.length === 1 ? (names[0] ?? "") : "projections", to, from);
    },
    onProgress(position: number): void {
      progress?.update(position);
    },
    end(): void {
      progress?.end();
    },
  };
}

function formatReport({ projection, events, position, differences: found }: Rebuilt): string {
  const outcome =
    found === null
      ? "rebuilt, there was no snapshot to compare with"
      : found.length === 0
        ? "no difference"
        : `${found.length} differences, corrected:\n  ${found.map(printable).join("\n  ")}`;
  return `${projection}: ${events} events up to position ${position}: ${outcome}\n`;
}

export interface ThreadOrder extends PartOrder {
  readonly env: Terminal["env"];
}

/**
 * Folds a part of a rebuild in a thread of its own, which opens the log by the same settings. Resolves once it has kept
 * its work, also that of an interrupted one; rejects when the thread failed.
 */
export async function foldInWorker(order: ThreadOrder, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const worker = new Worker(new URL("./replay/fold-thread.ts", import.meta.url), { workerData: order });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  const interrupt = (): void => worker.postMessage("interrupt");
  signal.addEventListener("abort", interrupt, { once: true });
  try {
    await once(worker, "exit");
  } finally {
    signal.removeEventListener("abort", interrupt);
  }
}
