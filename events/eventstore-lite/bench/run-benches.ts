import { mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Bench, BenchOptions, Row } from "./compare-contenders.ts";
import { plainRow, tableOf } from "./results-table.ts";

/** The type that statfs(2) gives for a file system in memory. */
const TMPFS_MAGIC = 0x01021994;

export type Benches = Readonly<Record<string, Bench>>;

/**
 * Runs the named benchmarks, or all but `peers`, and prints one table. `--logs` names a folder that keeps the long logs
 * for the next run: the longest takes a quarter of an hour to write. `--events` sets their length where it may vary.
 */
export async function runBenches(benches: Benches, peers: Benches, args: readonly string[]): Promise<void> {
  const known = { ...benches, ...peers };
  const usage = `usage: bench [${Object.keys(known).join(" | ")} ...] [--json] [--peers] [--quick] [--logs DIR] [--events N]\n`;
  const given = parse(args);
  const { json, peers: withPeers, quick, help, logs, events } = given?.values ?? {};
  const names = given?.positionals ?? [];
  const isLength = events === undefined || Number(events) > 0;
  if (given === undefined || help === true || !isLength || names.some((name) => !Object.hasOwn(known, name))) {
    (help === true ? process.stdout : process.stderr).write(usage);
    process.exitCode = help === true ? 0 : 2;
    return;
  }
  // Peers are other event stores, which have to be installed, so they run only on request.
  const isWanted = (name: string): boolean =>
    names.includes(name) || (Object.hasOwn(peers, name) ? withPeers === true : names.length === 0);
  const wanted = Object.entries(known).filter(([name]) => isWanted(name));
  const { rows, notes } = await inTemporaryFolder((directory) =>
    runAll(wanted, {
      quick: quick === true,
      directory,
      logs: logs ?? directory,
      ...(events === undefined ? {} : { events: Number(events) }),
    }),
  );
  process.stdout.write(
    json === true
      ? `${JSON.stringify({ rows: rows.map(plainRow), notes })}\n`
      : tableOf(rows) + notes.map((note) => `${note}\n`).join(""),
  );
}

/** Parses the command's arguments; undefined if one of its options is unknown. */
function parse(args: readonly string[]) {
  const flag = { type: "boolean" } as const;
  const text = { type: "string" } as const;
  const options = { json: flag, peers: flag, quick: flag, help: flag, logs: text, events: text } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch {
    return undefined;
  }
}

async function runAll(benches: readonly (readonly [string, Bench])[], options: Omit<BenchOptions, "note">) {
  const { directory, logs } = options;
  mkdirSync(logs, { recursive: true });
  const rows: Row[] = [];
  const notes: string[] = [];
  if (statfsSync(directory).type === TMPFS_MAGIC) {
    notes.push("the temporary folder is in memory, where fsync costs nothing: set TMPDIR to a folder on a disk");
  }
  for (const [name, bench] of benches) {
    process.stderr.write(`${name} …\n`);
    const note = (text: string): void => void notes.push(`${name}: ${text}`);
    try {
      rows.push(...(await bench({ ...options, note })));
    } catch (error) {
      // The other benchmarks took minutes, so their rows are printed although this one failed.
      note(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
      process.exitCode = 1;
    }
  }
  return { rows, notes };
}

async function inTemporaryFolder<Result>(work: (directory: string) => Promise<Result>): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), "bench-"));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  // The folder may hold gigabytes when a signal ends the run, so it is removed before the process ends.
  const onSignal = (): void => {
    remove();
    process.exit(130);
  };
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    return await work(directory);
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    remove();
  }
}
