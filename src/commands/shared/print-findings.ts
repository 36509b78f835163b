import type { Finding, FindingState } from "../../service/examination-finding.ts";
import { EXIT, type Style, type Terminal, printable } from "./terminal-answers-and-exit-codes.ts";

/** Words for the states of findings, padded to one width. */
const WORDS: Readonly<Record<FindingState, string>> = {
  ok: "ok     ",
  warning: "warning",
  missing: "missing",
  wrong: "WRONG  ",
};

const STYLES: Readonly<Record<FindingState, Style>> = { ok: "green", warning: "bold", missing: "bold", wrong: "red" };

/** Writes all findings of a check. Returns the exit code. */
export function report(terminal: Terminal, findings: readonly Finding[], json: boolean): number {
  for (const one of findings) {
    const { what, state, detail } = one;
    if (json) terminal.out(`${JSON.stringify(one)}\n`);
    else {
      terminal.out(WORDS[state], STYLES[state]);
      terminal.out(` ${what}: ${printable(detail)}\n`);
    }
  }
  return findings.some(({ state }) => state === "wrong") ? EXIT.fault : EXIT.ok;
}
