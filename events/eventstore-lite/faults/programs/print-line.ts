import { writeSync } from "node:fs";

const STDOUT = 1;

/** Prints at once and without a buffer, because the line must be known even if the process dies now. */
export function say(...words: readonly (string | number)[]): void {
  writeSync(STDOUT, `${words.join(" ")}\n`);
}
