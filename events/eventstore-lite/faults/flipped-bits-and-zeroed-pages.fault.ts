import { beforeAll, expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { randomInt } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { type ByteRange, findEventBytes, findIndexBytes } from "./find-event-and-index-bytes.ts";
import { alteredIn, fateOf, type Finding, type History, historyOf, tallyOf } from "./damage-outcome.ts";
import { appendAnywhere, copyOf, imageOf } from "./fill-and-copy-test-log.ts";

const newLogPath = temporaryLogs();

const FLIPS = 1_000;
const INDEX_FLIPS = 200;
const EVENTS = 400;
const CHARS = 60;

let image: string;
let history: History;
let pristine: Buffer;

beforeAll(async () => {
  const file = newLogPath();
  {
    await using store = await openSqliteStore({ file });
    await appendAnywhere(store, EVENTS, CHARS);
    history = await historyOf(store);
  }
  image = imageOf(file, "image");
  pristine = readFileSync(image);
});

test("the byte ranges for the flips are those of events", () => {
  const ids = findEventBytes(image).filter(({ field }) => field === "id");
  const texts = ids.map(({ start, bytes }) => pristine.toString("utf8", start, start + bytes));
  expect(texts.sort()).toEqual(history.events.map((event) => (JSON.parse(event) as { id: string }).id).sort());
});

test(`each of ${FLIPS} single bits flipped within events is detected`, async () => {
  const byField = Map.groupBy(findEventBytes(image), ({ field }) => field);
  const fields = [...byField.keys()];
  expect(fields.sort()).toEqual([
    "data",
    "hash",
    "id",
    "meta",
    "stream",
    "streams name",
    "time",
    "type",
    "types name",
    "version",
  ]);
  const findings: Finding[] = [];
  for (let flip = 0; flip < FLIPS; flip += 1) {
    const range = randomOf(byField.get(fields[flip % fields.length]!)!);
    findings.push(await fateWith((bytes) => flipBit(bytes, range)));
  }
  console.log(
    `bits flipped in events ${FLIPS} (${fields.join(", ")}): ${tallyOf(findings)}; undetected ${countUnseen(findings)}`,
  );
  expect(alteredIn(findings)).toEqual({});
  expect(countUnseen(findings)).toBe(0);
});

test(`each of ${INDEX_FLIPS} single bits flipped within indexes is detected or changes no read`, async () => {
  const byIndex = [...Map.groupBy(findIndexBytes(image), ({ field }) => field)];
  expect(byIndex).toHaveLength(4);
  const findings: Finding[] = [];
  for (let flip = 0; flip < INDEX_FLIPS; flip += 1) {
    const [, ranges] = byIndex[flip % byIndex.length]!;
    findings.push(await fateWith((bytes) => flipBit(bytes, randomOf(ranges))));
  }
  console.log(`bits flipped in indexes ${INDEX_FLIPS}: ${tallyOf(findings)}`);
  expect(alteredIn(findings)).toEqual({});
});

test("any page overwritten with zeroes is detected or changes no read", async () => {
  const pageBytes = Number(
    new DatabaseSync(image, { readOnly: true }).prepare("PRAGMA page_size").get()?.["page_size"],
  );
  const findings: Finding[] = [];
  for (let start = 0; start < pristine.length; start += pageBytes) {
    findings.push(await fateWith((bytes) => bytes.fill(0, start, start + pageBytes)));
  }
  console.log(`pages of zeroes ${findings.length}: ${tallyOf(findings)}`);
  expect(alteredIn(findings)).toEqual({});
});

test("a header overwritten with zeroes is refused", async () => {
  expect(await fateWith((bytes) => bytes.fill(0, 0, 100))).toMatchObject({ fate: "refused" });
});

/** Damages the file of a copy of the log with `damage`, and returns how the copy then opens, verifies and reads. */
function fateWith(damage: (bytes: Buffer) => void): Promise<Finding> {
  const bytes = Buffer.from(pristine);
  damage(bytes);
  const copy = copyOf(image);
  writeFileSync(copy, bytes);
  return fateOf(copy, history);
}

function flipBit(bytes: Buffer, { start, bytes: length }: ByteRange): void {
  bytes[start + randomInt(length)]! ^= 1 << randomInt(8);
}

function randomOf<Element>(elements: readonly Element[]): Element {
  return elements[randomInt(elements.length)]!;
}

/** Counts the bit flips that were not detected: the log opened and verified, although an event was changed. */
function countUnseen(findings: readonly Finding[]): number {
  return findings.filter(({ fate }) => fate !== "refused" && fate !== "found").length;
}
