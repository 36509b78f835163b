import { EXIT, type Terminal } from "./command.ts";
import { printable } from "./table.ts";

/** One thing looked at; where it is wrong, `detail` says what to do about it. */
export interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** What `check` answers, or throws. */
export async function finding(what: string, check: () => string | Promise<string>): Promise<Finding> {
  try {
    return { what, ok: true, detail: await check() };
  } catch (fault) {
    return { what, ok: false, detail: fault instanceof Error ? fault.message : String(fault) };
  }
}

/** Says all of them, and answers the exit code. */
export function report(terminal: Terminal, findings: readonly Finding[], json: boolean): number {
  for (const one of findings) {
    const { what, ok, detail } = one;
    if (json) terminal.out(`${JSON.stringify(one)}\n`);
    else {
      terminal.out(ok ? "ok   " : "WRONG", ok ? "green" : "red");
      terminal.out(` ${what}: ${printable(detail)}\n`);
    }
  }
  return findings.every(({ ok }) => ok) ? EXIT.ok : EXIT.fault;
}
