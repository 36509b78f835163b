import { DatabaseSync } from "node:sqlite";
import { encodeState } from "../../projections/encode-state.ts";
import { unpackState } from "../../src/projector/past-snapshots.ts";

/** Returns the decoded snapshots in a log's file, by their names. An encrypted snapshot is returned as it is stored. */
export async function readStoredStates(file: string): Promise<Record<string, string>> {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 10_000 });
  const texts: Record<string, string> = {};
  for (const { name, state } of db.prepare("SELECT name, state FROM snapshots").all() as {
    name: string;
    state: string;
  }[]) {
    texts[`the snapshot ${name}`] = await unpackState(state).then(encodeState, () => state);
  }
  return texts;
}
