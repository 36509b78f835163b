import { readFileSync } from "node:fs";
import { parseOtherRules, parseRules } from "../../config/what-if.ts";
import { formatRecipient } from "../../history/words/phrases.ts";
import { answerWhatIf } from "../../outreach/what-if/ask.ts";
import {
  describeAssumed,
  describeOutcome,
  describeUnknown,
  LIST_NAMES,
  LISTS,
  toRows,
  type WhatIfReport,
} from "../../outreach/what-if/report.ts";
import { createSuppressionHashes } from "../../recipients/suppress.ts";
import { readConfig } from "../shared/command.ts";
import { COMMAND_METADATA, openExistingLog, recordRead } from "../shared/log-session.ts";
import { withProgress } from "../shared/progress.ts";
import { withPath } from "../shared/system-fault.ts";
import { table } from "../shared/table.ts";
import { answer, EXIT, type Terminal } from "../shared/terminal.ts";

/** Answers what other rules would have done, and records that it was asked. Answers the exit code. */
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
  const asked = rules.length === 0 ? "the rules of then" : rules.join(", ");
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
