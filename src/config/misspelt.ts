import type { RawEnvironment } from "./environment.ts";
import type { Report } from "./error.ts";
import { settings } from "./schema.ts";

/** A slip of the hand is one or two letters; more is another name. */
const EDITS_MAX = 2;

/** Below this many letters two edits make a different word of it (`HOST`, `POST`, `PORT`). */
const NAME_CHARS_MIN = 8;

/** Prefixes that hardly anybody else uses: silence would look like success. */
const OUR_PREFIX = /^(?:REACHLOG|LINE|WHATSAPP|TELEGRAM)_/;

/** Warns only: a host's environment is full of names that belong to others. */
export function warnOfMisspelt(env: RawEnvironment, report: Report): void {
  for (const name of Object.keys(env).filter((key) => !settings.has(key))) {
    const meant = [...settings].find((known) => isClose(name, known));
    if (meant !== undefined) report.warn(`${name} is not read. Was ${meant} meant?`);
    else if (OUR_PREFIX.test(name)) report.warn(`${name} is not read: there is no such setting.`);
  }
}

function isClose(name: string, known: string): boolean {
  if (known.length < NAME_CHARS_MIN || Math.abs(name.length - known.length) > EDITS_MAX) return false;
  return editDistance(name.toUpperCase(), known) <= EDITS_MAX;
}

/** Levenshtein: insertions, deletions and replacements, a row at a time. */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    above = current;
  }
  return above[b.length] ?? 0;
}
