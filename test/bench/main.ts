import { intake } from "./intake.ts";

/** One line of the table: ours against a limit measured in the same run. */
export interface Measured {
  readonly what: string;
  readonly ours: number;
  readonly limit: number;
  readonly unit: string;
  /** What the ratio should reach. */
  readonly bar: string;
  /** Lowest and highest ratio of the rounds: how noisy the machine was. */
  readonly spread: readonly [number, number];
}

const BENCHES: Readonly<Record<string, (quick: boolean) => Promise<readonly Measured[]>>> = { intake };

const args = process.argv.slice(2);
const names = args.filter((arg) => !arg.startsWith("--"));
const unknown = names.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0 || args.includes("--help")) {
  console.error(`usage: bench [${Object.keys(BENCHES).join("|")} ...] [--json] [--quick]`);
  process.exit(args.includes("--help") ? 0 : 2);
}

const rows: Measured[] = [];
for (const [name, bench] of Object.entries(BENCHES)) {
  if (names.length === 0 || names.includes(name)) rows.push(...(await bench(args.includes("--quick"))));
}
if (args.includes("--json")) console.log(JSON.stringify(rows.map((row) => ({ ...row, ratio: row.ours / row.limit }))));
else print(rows);

function print(measured: readonly Measured[]): void {
  const cells = measured.map(({ what, ours, limit, unit, bar, spread }) => [
    what,
    `${Math.round(ours).toLocaleString("en")} ${unit}`,
    `${Math.round(limit).toLocaleString("en")} ${unit}`,
    `${(ours / limit).toFixed(2)} (${spread[0].toFixed(2)}–${spread[1].toFixed(2)})`,
    bar,
  ]);
  const table = [["what", "ours", "limit", "ratio (spread)", "bar"], ...cells];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of table) console.log(row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  "));
}
