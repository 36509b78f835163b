import { existsSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "eventstore-lite/bench";

/** Returns a log of `clicks` clicks that are pending on all channels. Created once per run, in a separate process. */
export async function backlogLog(directory: string, clicks: number): Promise<string> {
  const file = join(directory, `backlog-${clicks}.sqlite`);
  if (existsSync(file)) return file;
  process.stderr.write(`  writing ${clicks.toLocaleString("en")} pending clicks …\n`);
  const program = join(import.meta.dirname, "write-log-of-undelivered-clicks.ts");
  await outputOf([process.execPath, program, file, String(clicks)]);
  return file;
}
