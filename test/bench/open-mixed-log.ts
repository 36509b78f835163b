import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "eventstore-lite/bench";

/**
 * Returns a log of mixed events after an import of `people` recipients. All events are of now or, if `spread`, of half
 * a year. A separate process creates the log once per folder, so callers may only read or copy it.
 */
export async function mixedLog(
  folder: string,
  events: number,
  people = 0,
  spread?: "spread",
  campaigns = 0,
): Promise<string> {
  const more = campaigns > 0 ? ["0", String(campaigns)] : [];
  const parameters = [String(events), String(people), ...(spread === undefined ? [] : [spread]), ...more];
  const file = join(folder, `mixed-${parameters.join("-")}.sqlite`);
  if (existsSync(file)) return file;
  process.stderr.write(`  writing ${events.toLocaleString("en")} mixed events …\n`);
  const program = join(import.meta.dirname, "write-mixed-log.ts");
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  await outputOf([process.execPath, program, partial, ...parameters]);
  renameSync(partial, file);
  return file;
}
