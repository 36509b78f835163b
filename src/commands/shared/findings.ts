import { EXIT, type Style, type Terminal, printable } from "./terminal.ts";

/** `missing`: it is not there yet, and nothing is wrong with that; `wrong`: what has to be corrected. */
export type State = "ok" | "warning" | "missing" | "wrong";

/** One thing looked at; `detail` says what to do about it. */
export interface Finding {
  readonly what: string;
  readonly state: State;
  readonly detail: string;
}

/** A detail alone is that of what is ok. */
type Judged = string | { readonly missing: string };

/** The result of `check`; wrong if it throws. */
export async function finding(what: string, check: () => Judged | Promise<Judged>): Promise<Finding> {
  try {
    const judged = await check();
    return typeof judged === "string"
      ? { what, state: "ok", detail: judged }
      : { what, state: "missing", detail: judged.missing };
  } catch (fault) {
    return { what, state: "wrong", detail: fault instanceof Error ? fault.message : String(fault) };
  }
}

/** Padded to one width. */
const WORDS: Readonly<Record<State, string>> = {
  ok: "ok     ",
  warning: "warning",
  missing: "missing",
  wrong: "WRONG  ",
};

const STYLES: Readonly<Record<State, Style>> = { ok: "green", warning: "bold", missing: "bold", wrong: "red" };

/** Writes all findings. Returns the exit code. */
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
