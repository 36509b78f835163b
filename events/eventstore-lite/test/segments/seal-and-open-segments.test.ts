import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { ChainBroken } from "eventstore-lite/proof";
import { openSegment, SegmentDamaged, sealSegments } from "eventstore-lite/segments";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { createCatalogue, type SegmentEntry } from "../../src/segments/catalogue.ts";
import { proveSegment } from "../../src/segments/validate-segment.ts";
import { verifyArchive } from "../../src/segments/verify-archive.ts";
import { newEvent, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { createChain } from "../../src/segments/seal-and-open-segments.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();
const START = { position: 0, hash: "00".repeat(32) };

/** Seals a log of three events, each with an idempotency key, in one segment. */
async function sealThree() {
  await using store = await openSqliteStore({ file: newLogPath() });
  for (const one of [1, 2, 3])
    await store.append("a", [newEvent("T", { one })], { key: `k${one}`, digest: "d", expected: one - 1 });
  const [segment] = await take(sealSegments(store, START, 3));
  return { log: store.id, bytes: segment!.bytes, header: segment!.header };
}

const refusal = (work: () => unknown) => refusalOf(Promise.try(work));

test("a segment opens only as the next one of the same log", async () => {
  const { log, bytes, header } = await sealThree();
  const { events, keys } = openSegment(bytes, log, START);
  expect([...events()].map(({ position, data }) => [position, data])).toEqual([
    [1, { one: 1 }],
    [2, { one: 2 }],
    [3, { one: 3 }],
  ]);
  expect(keys.map(({ key }) => key)).toEqual(["k1", "k2", "k3"]);
  for (const [id, after, reason] of [
    ["another", START, `it is of the log ${log}`],
    [log, { position: 3, hash: header.hash }, "it follows on position 0, and 3 is the one before it"],
    [log, { position: 0, hash: header.hash }, "it follows on position 0"],
  ] as const) {
    const refused = await refusal(() => openSegment(bytes, id, after));
    expect(refused).toBeInstanceOf(SegmentDamaged);
    expect(String(refused)).toContain(reason);
  }
});

test("a segment with an altered or malformed part is refused as damaged", async () => {
  const { log, bytes, header } = await sealThree();
  const text = zstdDecompressSync(bytes).toString("utf8");
  const changes: readonly (readonly [change: string | RegExp, by: string])[] = [
    ['"one":2', '"one":5'],
    [header.hash, header.before],
    [header.tree[0]!, header.before],
    ['"tree":[', '"tree":["00",'],
    [/"tree":\[.*?\]/, '"tree":7'],
    [/"before":"\w+"/, '"before":"0"'],
    ['"first":1', '"first":"1"'],
    ['"last":3', '"last":4'],
    ['"last":3', '"last":1e300'],
    ['"last":3', '"last":0'],
    ['"keys":3', '"keys":4'],
    ['"keys":3', '"keys":-1'],
    [/"log":"[^"]*"/, '"log":null'],
    [/^\{/, ""],
    [/^.*\n/, "null\n"],
    ['["k2"', '["k2'],
    [/\["k2".*/, "{}"],
    [/\["k2".*/, '["k2","d",1]'],
  ];
  for (const [change, by] of changes) {
    const changed = text.replace(change, by);
    expect([change, changed === text]).toEqual([change, false]);
    const refused = await refusal(() => openSegment(zstdCompressSync(changed), log, START));
    expect([change, refused]).toEqual([change, expect.any(SegmentDamaged)]);
  }
  expect(await refusal(() => openSegment(Buffer.from("none"), log, START))).toBeInstanceOf(SegmentDamaged);
});

test("a segment decompresses to no more than its reader allows", async () => {
  const { log, bytes } = await sealThree();
  const size = zstdDecompressSync(bytes).length;
  expect(openSegment(bytes, log, START, size).keys).toHaveLength(3);
  const refused = await refusal(() => openSegment(bytes, log, START, size - 1));
  expect(String(refused)).toContain("it decompresses to more than a segment holds");
  const inflated = zstdCompressSync(Buffer.alloc((1 << 29) + 1));
  expect(inflated.length).toBeLessThan(1 << 18);
  expect(await refusal(() => openSegment(inflated, log, START))).toBeInstanceOf(SegmentDamaged);
});

interface Line {
  readonly position?: number;
  readonly stream: string;
  readonly version: number;
  readonly time: number;
}

/** Makes a log of these test events; its hash chain is whole, even if their fields make no sense. */
function logOf(lines: readonly Line[]) {
  const events = lines.map(({ position, stream, version, time }, index) =>
    Buffer.from([position ?? index + 1, stream, version, `id${index}`, "T", time, "{}", "{}"].join("\n")),
  );
  const chain = createChain(START.hash);
  const hashes = [START.hash];
  for (const event of events) {
    chain.add(event);
    hashes.push(chain.hash());
  }
  return {
    id: "log",
    async *readCanonical({ from, to }: { readonly from: number; readonly to: number }) {
      for (let at = from; at <= Math.min(to, events.length); at += 1) yield [events[at - 1]!];
    },
    async *readKeys() {},
    hashAt: async (position: number) => hashes[position],
  };
}

async function sealLines(lines: readonly Line[]): Promise<Uint8Array> {
  const [segment] = await take(sealSegments(logOf(lines), START, lines.length));
  return segment!.bytes;
}

test("a segment is proved only with positions, times and versions in order", async () => {
  const first: Line = { stream: "a", version: 3, time: 10 };
  const other: Line = { stream: "b", version: 1, time: 10 };
  const next: Line = { stream: "a", version: 4, time: 11 };
  const proved = proveSegment(await sealLines([first, other, next]), "log", START);
  expect(proved.streams).toEqual([
    ["a", 3, 4, 3],
    ["b", 1, 1, 2],
  ]);
  for (const [last, reason] of [
    [{ ...next, time: 9 }, "position 3: the time is before that of its predecessor"],
    [{ ...next, version: 5 }, "position 3: the version does not follow on the one before it in its stream"],
    [{ ...next, version: 3 }, "position 3: the version does not follow"],
    [{ ...next, version: 2 }, "position 3: the version does not follow"],
    [{ ...next, position: 4 }, "position 3: another position stands there"],
  ] as const) {
    const bytes = await sealLines([first, other, last]);
    expect(String(await refusal(() => proveSegment(bytes, "log", START)))).toContain(reason);
  }
  const bytes = await sealLines([first, other, next]);
  expect(String(await refusal(() => proveSegment(bytes, "another", START)))).toContain("it is of the log log");
});

test("sealing is refused if the log's chain differs or ends too early", async () => {
  const lines: readonly Line[] = [1, 2, 3].map((version) => ({ stream: "a", version, time: version }));
  const log = logOf(lines);
  expect(await take(sealSegments(log, START, 3))).toHaveLength(1);
  const other = {
    ...log,
    hashAt: async (position: number) => (position === 3 ? "11".repeat(32) : log.hashAt(position)),
  };
  expect(await refusalOf(take(sealSegments(other, START, 3)))).toBeInstanceOf(ChainBroken);
  // A wrong hash is also found at the end of a segment that is not the last one.
  const early = {
    ...log,
    hashAt: async (position: number) => (position === 1 ? "11".repeat(32) : log.hashAt(position)),
  };
  expect(await refusalOf(take(sealSegments(early, START, 3, 1)))).toBeInstanceOf(ChainBroken);
  expect(await refusalOf(take(sealSegments(log, START, 4)))).toBeInstanceOf(ChainBroken);
  expect(await take(sealSegments(log, START, 3, 1))).toMatchObject(
    [1, 2, 3].map((at) => ({ header: { first: at, last: at } })),
  );
});

test("a version missing between two segments is found", async () => {
  const lines = [1, 2, 3, 4].map((version): Line => ({ stream: "a", version, time: version }));
  const faultOf = async (found: readonly Line[]) => {
    const files = new Map<string, Uint8Array>();
    const entries: SegmentEntry[] = [];
    let after: { readonly position: number; readonly hash: string } = START;
    for (const last of [2, 4]) {
      const [segment] = await take(sealSegments(logOf(found), after, last));
      const { header, bytes, sha256, types, keysFrom } = proveSegment(segment!.bytes, "log", after);
      const [firstTime, lastTime] = [Date.parse(header.from), Date.parse(header.until)];
      const name = `${header.first}`;
      files.set(name, segment!.bytes);
      entries.push({ ...header, name, bytes, sha256, types: { ...types }, firstTime, lastTime, keysFrom });
      after = { position: last, hash: header.hash };
    }
    const end = found.at(-1)!.version;
    const table = {
      end: () => 4,
      segmentsAfter: () => entries,
      streamsAfter: (name: string) =>
        name === "" ? [{ stream: "a", version: end, position: 4, segments: entries.length }] : [],
    };
    const catalogue = createCatalogue(table);
    await catalogue.refresh();
    const range = { log: "log", from: 1, to: 4, threads: 1, onChecked() {}, signal: new AbortController().signal };
    return verifyArchive(catalogue, table, { read: async (name) => files.get(name) }, range);
  };
  expect(await faultOf(lines)).toBeUndefined();
  const [one, two, ...later] = lines as [Line, Line, ...Line[]];
  const left = [one, two, ...later.map((line) => ({ ...line, version: line.version + 1 }))];
  expect(await faultOf(left)).toMatchObject({ position: 3, reason: expect.stringContaining("does not follow") });
  const begun = lines.map((line) => ({ ...line, version: line.version + 1 }));
  expect(await faultOf(begun)).toMatchObject({ position: 1, reason: expect.stringContaining("does not follow") });
});
