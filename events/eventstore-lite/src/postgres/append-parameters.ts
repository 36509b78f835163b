import { type AppendRequest, EVENT_FIELDS } from "../append/writer-messages.ts";
import type { ExpectedVersion } from "../event-store-interface.ts";

/** Batch in the form that the SQL function `append` takes (log-1.sql). Each list is a text with one entry per line. */
export interface Columns {
  readonly streams: string;
  /**
   * For each stream, a version that it has certainly reached, as an SQL array literal. `appends` and `conditions` are
   * array literals too.
   */
  readonly floors: string;
  readonly keys: string;
  /**
   * SQL array literal: for each idempotency key, the number of archived segments that were searched without finding the
   * key. The SQL function refuses a key whose hash is in more segments than that. Empty if no segment was searched.
   */
  readonly compared: string;
  readonly leases: string;
  readonly appends: string;
  /** Conditions of the appends (expected version, key, lease); empty if no append has any. */
  readonly conditions: string;
  readonly digests: string;
  readonly ids: string;
  readonly types: string;
  readonly datas: string;
  readonly metas: string;
}

const SEPARATOR = "\n";

/** Encodes appends as columns. `floorOf` returns a version that a stream has reached for certain. */
export function columnsOf(appends: readonly AppendRequest[], floorOf: (stream: string) => number): Columns {
  const streams = createNames();
  const keys = createNames();
  const leases = createNames();
  const numbers: number[] = [];
  const conditions: number[] = [];
  const isConditional = appends.some(({ expected, key, lease }) => expected !== "any" || key !== "" || lease !== "");
  const columns: string[][] = [[], [], [], []];
  const compared: number[] = [];
  for (const { stream, expected, key, comparedSegments, lease, token, count, fields, start } of appends) {
    numbers.push(streams.place(stream), count);
    if (isConditional) conditions.push(numberOf(expected), keys.place(key), leases.place(lease), token);
    if (comparedSegments > 0) compared[keys.place(key) - 1] = comparedSegments;
    for (let event = 0; event < count; event += 1) {
      const at = start + event * EVENT_FIELDS;
      for (const [field, column] of columns.entries()) column.push(fields[at + field]!);
    }
  }
  const [ids, types, datas, metas] = columns.map((column) => column.join(SEPARATOR));
  return {
    streams: streams.text(),
    floors: `{${streams.names().map(floorOf).join()}}`,
    keys: keys.text(),
    compared: compared.length === 0 ? "{}" : `{${Array.from(compared, (segments) => segments ?? 0).join()}}`,
    leases: leases.text(),
    appends: `{${numbers.join()}}`,
    conditions: `{${conditions.join()}}`,
    digests: appends.map(({ digest }) => digest).join(SEPARATOR),
    ids: ids!,
    types: types!,
    datas: datas!,
    metas: metas!,
  };
}

function numberOf(expected: ExpectedVersion): number {
  if (expected === "any") return -1;
  if (expected === "none") return -2;
  return expected === "exists" ? -3 : expected;
}

interface Names {
  /**
   * Returns the number of a name in the batch's list of distinct streams, keys or leases, from 1 on. Adds a name that
   * is new. Returns 0 for an empty name.
   */
  place(name: string): number;
  names(): readonly string[];
  text(): string;
}

function createNames(): Names {
  const places = new Map<string, number>();
  return {
    place(name) {
      if (name === "") return 0;
      const known = places.get(name);
      if (known !== undefined) return known;
      places.set(name, places.size + 1);
      return places.size;
    },
    names: () => [...places.keys()],
    text: () => [...places.keys()].join(SEPARATOR),
  };
}
