import { writeSync } from "node:fs";

const STDOUT = 1;

/** At once and without a buffer: what was said must be known although the process dies now. */
export function say(...words: readonly (string | number)[]): void {
  writeSync(STDOUT, `${words.join(" ")}\n`);
}
