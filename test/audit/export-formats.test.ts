// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { EXPORT_FORMATS, type Format } from "../../src/log/export-formats.ts";
import { csvRecord, readGuarded } from "../../src/log/export-formats/csv.ts";
import type { StoredEvent } from "../../src/log/export-formats/write-export-text.ts";
import { name, newEvent } from "./event-arbitraries.ts";
import { countCases } from "../harness/case-count.ts";

const CASES = countCases(1_000);
const NAMES = Object.keys(EXPORT_FORMATS) as Format[];

const stored: fc.Arbitrary<StoredEvent> = fc
  .record({
    event: newEvent,
    position: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    stream: name,
    version: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    time: fc
      .date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true })
      .map((date) => date.toISOString()),
    hash: fc.string({ unit: fc.constantFrom("0", "9", "a", "f"), minLength: 64, maxLength: 64 }),
  })
  .map(({ event, ...place }) => ({ ...event, ...place }));

const EVENT: StoredEvent = {
  position: 7,
  id: "e",
  stream: "link-go.example/a",
  version: 2,
  type: "LinkClicked",
  time: "2026-01-02T03:04:05.678Z",
  data: { url: "=1+1" },
  meta: { schema: 3, traceparent: "00-ab-cd-01", caller: "tester" },
  hash: "ab".repeat(32),
};

/** Parsers by export format. Each returns the data and the metadata of an exported line. */
const READERS: Readonly<Record<Format, (line: string) => readonly unknown[]>> = {
  jsonl: (line) => Object.values(JSON.parse(line) as Record<string, unknown>).slice(6, 8),
  csv: (line) => (parse(line)[0] ?? []).slice(6, 8).map((cell) => JSON.parse(cell.replace(/^'/, "")) as unknown),
  cloudevents: (line) => {
    const { data, meta } = JSON.parse(line) as { data: unknown; meta: string };
    return [data, JSON.parse(meta)];
  },
};

test.each(NAMES)("%s writes each event on one line and keeps the JSON of data and meta", (format) => {
  fc.assert(
    fc.property(stored, (event) => {
      const text = EXPORT_FORMATS[format].line(event);
      expect(text.split("\n")).toEqual([expect.any(String), ""]);
      const { data, meta } = event;
      expect(READERS[format](text).map((value) => JSON.stringify(value))).toEqual(
        [data, meta].map((value) => JSON.stringify(value)),
      );
    }),
    { numRuns: CASES },
  );
});

describe("the csv format", () => {
  const cells = (event: StoredEvent) => EXPORT_FORMATS.csv.line(event).trimEnd();

  test("keeps a spreadsheet from running a cell as a formula", () => {
    for (const first of ["=", "+", "-", "@"]) {
      const event = { ...EVENT, stream: `${first}cmd|' /C calc'!A0` };
      expect(cells(event)).toContain(`,"'${first}cmd`);
    }
  });

  test("distinguishes an event's apostrophe from that of the guard", () => {
    const event = { ...EVENT, stream: "'=1" };
    expect(cells(event)).toContain(`,"''=1",`);
  });

  const FORMULA = /(?:^|[;\t])\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/;
  const hostile = fc.array(fc.constantFrom(";", "\t", " ", "=", "+", "@", "'", "\uff1d", '"', "a"), { maxLength: 12 });

  test("has no formula at the start of a cell or after a semicolon or tab", () => {
    fc.assert(
      fc.property(hostile, (characters) => {
        const text = characters.join("");
        const [[written = ""] = []] = parse(csvRecord([text]));
        expect(written).not.toMatch(FORMULA);
        expect(readGuarded(written)).toBe(text);
        const event = { ...EVENT, stream: `s${text}`, data: { text } } as StoredEvent;
        const cells = parse(EXPORT_FORMATS.csv.line(event))[0] ?? [];
        for (const cell of cells) expect(cell).not.toMatch(FORMULA);
      }),
      { numRuns: CASES },
    );
  });

  test("begins with a byte order mark and the names of its columns", () => {
    expect(EXPORT_FORMATS.csv.head).toBe("\ufeffposition,id,stream,version,type,time,data,meta,hash,stored\r\n");
  });
});

describe("events in the cloudevents format", () => {
  const parsed = (event: StoredEvent) => JSON.parse(EXPORT_FORMATS.cloudevents.line(event)) as Record<string, unknown>;

  // Checks chapter 3 (context attributes) of CloudEvents 1.0.2, and chapter 3 of its JSON format.
  test("have the required attributes, with valid names and values", () => {
    fc.assert(
      fc.property(stored, (event) => {
        const { data: _data, ...attributes } = parsed(event);
        expect(attributes).toMatchObject({
          specversion: "1.0",
          source: "reachlog",
          datacontenttype: "application/json",
        });
        for (const required of ["id", "type", "subject", "time"]) expect(attributes[required]).toBeString();
        for (const [attribute, value] of Object.entries(attributes)) {
          expect(attribute).toMatch(/^[a-z0-9]{1,20}$/);
          if (typeof value === "number") expect(Math.abs(value)).toBeLessThan(2 ** 31);
          else expect(value).toMatch(/^.+$/su);
        }
        // oxlint-disable-next-line no-control-regex
        expect(attributes["meta"]).not.toMatch(/[\u0000-\u001f\u007f-\u009f]|\p{Noncharacter_Code_Point}/u);
      }),
      { numRuns: CASES },
    );
  });

  test("have separate attributes for the schema version and the traceparent", () => {
    expect(parsed(EVENT)).toMatchObject({ schemaversion: 3, traceparent: "00-ab-cd-01", subject: EVENT.stream });
    expect(JSON.parse(String(parsed(EVENT)["meta"]))).toEqual(EVENT.meta);
  });
});
