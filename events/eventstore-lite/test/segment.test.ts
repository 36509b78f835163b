import { expect, test } from "bun:test";
import { openSegment, openSqliteStore, SegmentDamaged, sealSegments } from "eventstore-lite";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { newEvent, refusalOf, take } from "../src/contract/events.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();
const START = { position: 0, hash: "00".repeat(32) };

/** A log of three events, each with a key, as one segment. */
async function sealThree() {
  await using store = await openSqliteStore({ file: newLogPath() });
  for (const one of [1, 2, 3])
    await store.append("a", [newEvent("T", { one })], { key: `k${one}`, digest: "d", expected: one - 1 });
  const [segment] = await take(sealSegments(store, START, 3));
  return { log: store.id, bytes: segment!.bytes, header: segment!.header };
}

const refusal = (work: () => unknown) => refusalOf(Promise.try(work));

test("a segment opens only as the next one of its own log", async () => {
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

test("events, chain and tree of a segment are proved, and nothing malformed is thrown as it is", async () => {
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
  const inflated = zstdCompressSync(Buffer.alloc(1 << 30));
  expect(inflated.length).toBeLessThan(1 << 18);
  expect(await refusal(() => openSegment(inflated, log, START))).toBeInstanceOf(SegmentDamaged);
});
