import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLedger, type Ledger } from "./record-answers-to-appends.ts";
import { startProgram } from "./start-program.ts";

/** The output and the end of a program whose system calls were tampered with. */
export interface Injected {
  /** True if the program reached the call that was to fail. */
  readonly isInjected: boolean;
  readonly ledger: Ledger;
  /** Output lines of the program that do not report on an append, such as `closed`, or `refused` with the error. */
  readonly words: readonly string[];
  readonly code: number | null;
}

/**
 * Runs programs/append-fixed-number.ts on `file` under strace with one injection, such as `fsync:error=EIO:when=3`. strace
 * counts calls for each thread; that suffices, because only one thread of the store writes to the log.
 */
export async function appendRoundsUnder(injection: string, file: string): Promise<Injected> {
  const directory = mkdtempSync(join(tmpdir(), "eventstore-lite-trace-"));
  const trace = join(directory, "trace");
  const calls = injection.slice(0, injection.indexOf(":"));
  // With --seccomp-bpf, strace stops the program at the traced calls only, which is twice as fast; but strace 6.1 then
  // injects no signals.
  const speed = injection.includes("signal=") ? [] : ["--seccomp-bpf"];
  const ledger = createLedger();
  const words: string[] = [];
  const program = startProgram("append-fixed-number", {
    wrapper: ["strace", "-f", ...speed, "-o", trace, "-e", `trace=${calls}`, "-e", `inject=${injection}`],
    arguments: [file],
    onLine: (line) => (/^[?+!] /.test(line) ? ledger.take(line) : words.push(line)),
  });
  const { code, signal } = await program.ended;
  // strace ends by the signal that it injected, and then its last lines are missing.
  const isInjected = signal === "SIGKILL" || readFileSync(trace, "utf8").includes("INJECTED");
  rmSync(directory, { recursive: true });
  return { isInjected, ledger, words, code };
}
