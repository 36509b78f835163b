import { expect } from "bun:test";
import { exported, type Installation } from "../harness/process.ts";

/** Returns the ids of acknowledged events that the log lacks, and the ids of events that it contains more than once. */
export async function lossesOf(
  world: Installation,
  acknowledged: ReadonlySet<string>,
): Promise<{ lost: string[]; doubled: string[] }> {
  const seen = new Map<string, number>();
  for (const event of await exported(world)) {
    const { id } = event as unknown as { id: string };
    seen.set(id, (seen.get(id) ?? 0) + 1);
  }
  return {
    lost: [...acknowledged].filter((id) => !seen.has(id)),
    doubled: [...seen].filter(([, times]) => times > 1).map(([id]) => id),
  };
}

/** Expects a valid hash chain, and projections that agree with a replay from the start. */
export async function expectWhole(world: Installation): Promise<void> {
  expect(await world.execute("audit", "verify")).toMatchObject({ code: 0 });
  const { code, out } = await world.execute("replay", "--json");
  const reports = out.trim().split("\n");
  const differences = reports.map((line) => (JSON.parse(line) as { differences: unknown }).differences);
  // If a report had null instead of a list, the replay would have had nothing to compare with.
  expect({ code, differences }).toEqual({ code: 0, differences: reports.map(() => []) });
}
