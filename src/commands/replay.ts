import { availableParallelism } from "node:os";
import { PERSONAL_PROJECTIONS, PROJECTION_NAMES, type ProjectionName } from "../../projections/all.ts";
import { Command, Option, type MakeCommand, readConfig } from "./shared/command.ts";
import { answerEach, EXIT, type Terminal, printable, table, answer } from "./shared/terminal-answers-and-exit-codes.ts";
import { openExistingLog, COMMAND_METADATA, recordRead } from "./shared/open-log-and-record-reads.ts";
import { startProgress, type Progress, withProgress } from "./shared/progress.ts";
import { rebuild, rebuildTree, type Rebuilt, type RebuildOptions } from "../log/rebuild-projections.ts";
import { foldInWorker } from "../service/fold-in-worker.ts";
import { readFileSync } from "node:fs";
import { parseOtherRules, parseRules } from "../config/parse-what-if-rules.ts";
import { formatRecipient } from "../history/sentences/sentence-parts.ts";
import { answerWhatIf } from "../outreach/what-if/answer-what-if.ts";
import {
  describeAssumed,
  describeOutcome,
  describeUnknown,
  LIST_NAMES,
  LISTS,
  toRows,
  type WhatIfReport,
} from "../outreach/what-if/report.ts";
import { createSuppressionHashes } from "../privacy/suppression-hashes.ts";
import { withPath } from "../platform/describe-system-errors.ts";

export const replay: MakeCommand = (terminal) =>
  new Command("replay")
    .summary("rebuild projections from the log and report what changed")
    .description(
      `Folds the log again from its first event, in one pass for all projections and in a
separate process: a service keeps running, and loads the new states when they are
ready. Compares each with its stored snapshot, at the snapshot's own position. Exit
code 1 if something differed, which is then corrected. Without --projection it also
rebuilds the tiles of the log's Merkle tree.

With --what-if it rebuilds nothing: it decides all runs of the log again by the
rules of a JSON file, such as {"DAILY_LIMIT": 20, "SEND_WINDOW": null}, and shows
what would differ. Rules have the names and values of settings; a rule that is
not named stays as it was. BOT_RULE (lists or none) and BOT_USER_AGENTS (words)
change which clicks count as bots. Replies to messages that were never sent, and
clicks on their links, are unknown.

If interrupted, it exits 75 (unless it is killed), and the next replay resumes
from the last saved work.`,
    )
    .addOption(new Option("--projection <name>", "only this projection").choices(PROJECTION_NAMES))
    .option("--restart", "begin at the first event, and discard an interrupted replay's work")
    .addOption(
      new Option("--what-if <file>", "show what other rules would have done").conflicts(["projection", "restart"]),
    )
    .option("--json", "answer with one JSON object for each projection, or one for --what-if")
    .examples("reachlog replay --projection stats", "reachlog replay --what-if rules.json")
    .action(async ({ projection, restart, whatIf, json }) => {
      if (whatIf !== undefined) return askWhatIf(terminal, whatIf, json);
      const names = projection === undefined ? PROJECTION_NAMES : [projection];
      await using store = await openExistingLog(terminal);
      const { signal } = terminal;
      let progress: Progress | undefined;
      const env = { ...terminal.env };
      const inWorker: RebuildOptions["foldInWorker"] = (order, ended) => foldInWorker({ env, ...order }, ended);
      const rebuilt = await rebuild(store, names, {
        restart: restart === true,
        signal,
        metadata: COMMAND_METADATA,
        foldInWorker: availableParallelism() > 1 ? inWorker : undefined,
        onBegin(from, to) {
          if (from > 0) terminal.err(`resuming from position ${from}, where an earlier replay was interrupted\n`);
          progress = startProgress(terminal, projection ?? "projections", to, from);
        },
        onProgress: (position) => progress?.update(position),
      });
      progress?.end();
      if (rebuilt === undefined) {
        terminal.err("interrupted; the next replay resumes from here\n");
        return EXIT.temporary;
      }
      if (projection === undefined) await rebuildTree(store, signal);
      if (rebuilt.some(showsRecipients)) {
        const filters = projection === undefined ? {} : { filters: ["projection"] };
        await recordRead(terminal, store, { resource: "recipients", ...filters });
      }
      answerEach(terminal, json, rebuilt, rebuilt.map(formatReport).join(""));
      return rebuilt.every(({ differences }) => (differences ?? []).length === 0) ? EXIT.ok : EXIT.fault;
    });

/** True if a rebuild's report has differences in a projection whose state contains names of recipients. */
function showsRecipients({ projection, differences }: Rebuilt): boolean {
  return differences !== null && differences.length > 0 && PERSONAL.has(projection);
}

const PERSONAL: ReadonlySet<ProjectionName> = new Set(PERSONAL_PROJECTIONS);

function formatReport({ projection, events, position, differences: found }: Rebuilt): string {
  const outcome =
    found === null
      ? "rebuilt, there was no snapshot to compare with"
      : found.length === 0
        ? "no difference"
        : `${found.length} differences, corrected:\n  ${found.map(printable).join("\n  ")}`;
  return `${projection}: ${events} events up to position ${position}: ${outcome}\n`;
}

/**
 * Shows what outreach would have done until now under the rules in `file`, and records the question in the log. Returns
 * the exit code.
 */
export async function askWhatIf(terminal: Terminal, file: string, json: boolean | undefined): Promise<number> {
  const text = withPath(file, () => readFileSync(file, "utf8"));
  const { outreach: today, outreachWith } = readConfig(terminal);
  const rules = parseOtherRules(parseRules(text, file), file, outreachWith);
  await using log = await openExistingLog(terminal);
  const deps = {
    log,
    hashesOf: createSuppressionHashes(await log.vault.stableKey("suppression")),
    today,
    clock: log.logClock.now,
    metadata: terminal.caller === undefined ? COMMAND_METADATA : { caller: terminal.caller },
    signal: terminal.signal,
    beforeRecord: () => recordRead(terminal, log, { resource: "preview" }),
  };
  const { position: to } = await log.head();
  const report = await withProgress(terminal, "what if", to, (onProgress) => {
    return answerWhatIf(rules, { ...deps, onProgress });
  });
  if (report === undefined) {
    terminal.err("interrupted; nothing was recorded\n");
    return EXIT.temporary;
  }
  answer(terminal, json, report, toText(report));
  return EXIT.ok;
}

const HEAD = ["day", "what", "was", "would be", "difference", "unknown"] as const;

function toText(report: WhatIfReport): string {
  const { rules, days, runs, as_of } = report;
  const asked = rules.length === 0 ? "the original rules" : rules.join(", ");
  const rows = toRows(report).map(({ day, what, was, would, difference, unknown = "" }) => {
    return [day, what, was, would, difference, unknown];
  });
  const unknown = describeUnknown(report).map((line) => `${line}\n`);
  return [
    days.length === 0 ? `under ${asked} nothing differs\n` : `under ${asked}:\n`,
    table(HEAD, rows),
    ...LIST_NAMES.map((kind) => listAsText(report, kind)),
    ...(unknown.length === 0 ? [] : ["\n", ...unknown]),
    ...describeAssumed(report).map((line) => `${line}\n`),
    `(${runs.was} runs were made, ${runs.would} would be; up to position ${as_of.position})\n`,
  ].join("");
}

function listAsText({ recipients }: WhatIfReport, kind: (typeof LIST_NAMES)[number]): string {
  const { count, shown } = recipients[kind];
  if (count === 0) return "";
  const rows = shown.map(({ recipient, was, would }) => {
    return [formatRecipient(recipient), describeOutcome(was), describeOutcome(would)];
  });
  const more = count > shown.length ? `and ${count - shown.length} more\n` : "";
  return `\n${count} ${LISTS[kind]}\n${table(["recipient", "was", "would be"], rows)}${more}`;
}
