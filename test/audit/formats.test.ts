// On no harness.
import { describe, expect, test } from "bun:test";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { EXPORT_FORMATS, type Format } from "../../src/log/export-formats.ts";
import { csvRecord, readGuarded } from "../../src/log/export-formats/csv.ts";
import { LineFault, type StoredEvent } from "../../src/log/export-formats/format.ts";
import { name, newEvent } from "./events.ts";

const CASES = 1_000;
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

/** The lines of an export, as an import receives them. */
function linesOf(format: Format, events: readonly StoredEvent[]): string[] {
  const { head, line } = EXPORT_FORMATS[format];
  return (head + events.map(line).join("")).trimEnd().split(/\r?\n/);
}

function readAll(format: Format, lines: readonly string[]): readonly (StoredEvent | undefined)[] {
  return EXPORT_FORMATS[format]
    .createReader()(lines)
    .filter((event) => event !== undefined);
}

function faultOf(format: Format, lines: readonly string[]): unknown {
  try {
    return readAll(format, lines);
  } catch (fault) {
    expect(fault).toBeInstanceOf(LineFault);
    return [(fault as LineFault).index, (fault as Error).message];
  }
}

for (const format of NAMES) {
  describe(format, () => {
    test("gives back every event unchanged, whatever it holds, byte by byte in its JSON", () => {
      fc.assert(
        fc.property(fc.array(stored, { minLength: 1, maxLength: 5 }), (events) => {
          const lines = linesOf(format, events);
          const read = readAll(format, lines) as StoredEvent[];
          expect(read.map((event) => JSON.stringify(event.data))).toEqual(
            events.map((event) => JSON.stringify(event.data)),
          );
          expect(linesOf(format, read)).toEqual(lines);
        }),
        { numRuns: CASES },
      );
    });

    test("writes each event in one line, and skips empty ones", () => {
      const lines = linesOf(format, [EVENT, EVENT]);
      const spaced = lines.flatMap((line) => [line, ""]);
      expect(readAll(format, spaced)).toStrictEqual([EVENT, EVENT]);
    });

    test("names the line that is damaged", () => {
      const lines = linesOf(format, [EVENT, EVENT, EVENT, EVENT, EVENT]);
      const last = lines.length - 1;
      for (const cut of [1, 20, 100]) {
        const [index] = faultOf(format, lines.with(last, lines[last]!.slice(0, -cut))) as [number];
        expect(index).toBe(last);
      }
      expect(faultOf(format, lines.with(3, "what?"))).toMatchObject([3, expect.any(String)]);
    });
  });
}

test("a line of JSON that is no event is refused", () => {
  for (const line of ["[]", "null", "7", '"text"']) {
    expect(faultOf("jsonl", [line])).toEqual([0, "not a JSON object"]);
    expect(faultOf("cloudevents", [line])).toEqual([0, "not a JSON object"]);
  }
});

describe("csv", () => {
  const cells = (event: StoredEvent) => EXPORT_FORMATS.csv.line(event).trimEnd();

  test("keeps a spreadsheet from running a cell, and is read without the guard", () => {
    for (const first of ["=", "+", "-", "@"]) {
      const event = { ...EVENT, stream: `${first}cmd|' /C calc'!A0` };
      expect(cells(event)).toContain(`,"'${first}cmd`);
      expect(readAll("csv", linesOf("csv", [event]))).toStrictEqual([event]);
    }
  });

  test("tells an apostrophe of the event from that of the guard", () => {
    const event = { ...EVENT, stream: "'=1" };
    expect(cells(event)).toContain(`,"''=1",`);
    expect(readAll("csv", linesOf("csv", [event]))).toStrictEqual([event]);
  });

  const FORMULA = /(?:^|[;\t])\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/;
  const hostile = fc.array(fc.constantFrom(";", "\t", " ", "=", "+", "@", "'", "\uff1d", '"', "a"), { maxLength: 12 });

  test("begins no formula in a cell, nor behind a semicolon or a tab in one, and reads each cell back", () => {
    fc.assert(
      fc.property(hostile, (characters) => {
        const text = characters.join("");
        const [[written = ""] = []] = parse(csvRecord([text]));
        expect(written).not.toMatch(FORMULA);
        expect(readGuarded(written)).toBe(text);
        const event = { ...EVENT, stream: `s${text}`, data: { text } } as StoredEvent;
        const cells = parse(EXPORT_FORMATS.csv.line(event))[0] ?? [];
        for (const cell of cells) expect(cell).not.toMatch(FORMULA);
        expect(readAll("csv", linesOf("csv", [event]))).toStrictEqual([event]);
      }),
      { numRuns: CASES },
    );
  });

  test("begins with a byte order mark, by which a spreadsheet knows UTF-8, and is read with it and without", () => {
    expect(EXPORT_FORMATS.csv.head.codePointAt(0)).toBe(0xfeff);
    const [header = "", ...records] = linesOf("csv", [EVENT]);
    expect(readAll("csv", [header.replace("\ufeff", ""), ...records])).toStrictEqual([EVENT]);
  });

  test("wants its header, which others may quote", () => {
    const [header, ...records] = linesOf("csv", [EVENT]);
    expect(faultOf("csv", records)).toMatchObject([0, expect.stringContaining("position,id,stream")]);
    expect(faultOf("csv", [header!.replaceAll(",", ";"), ...records])).toMatchObject([0, expect.any(String)]);
    const quoted = header!.split(",").map((column) => `"${column}"`);
    expect(readAll("csv", [quoted.join(","), ...records])).toStrictEqual([EVENT]);
  });
});

describe("cloudevents", () => {
  const parsed = (event: StoredEvent) => JSON.parse(EXPORT_FORMATS.cloudevents.line(event)) as Record<string, unknown>;

  // CloudEvents 1.0.2, 3 (context attributes) and its JSON format, 3.
  test("are valid: required attributes, names of a-z and 0-9, values of its types", () => {
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

  test("tell in attributes of their own what others may want of meta", () => {
    expect(parsed(EVENT)).toMatchObject({ schemaversion: 3, traceparent: "00-ab-cd-01", subject: EVENT.stream });
    expect(JSON.parse(String(parsed(EVENT)["meta"]))).toEqual(EVENT.meta);
  });

  test("of another source, or of an older export without meta, are refused", () => {
    const refusals = [
      { source: "other" },
      { specversion: "0.3" },
      { type: "other.T" },
      { sequence: 7 },
      { sequence: "x" },
    ];
    for (const fields of [...refusals, { meta: undefined }]) {
      expect(faultOf("cloudevents", [JSON.stringify({ ...parsed(EVENT), ...fields })])).toMatchObject([
        0,
        expect.any(String),
      ]);
    }
  });

  test("may carry what those have added through whose hands they went", () => {
    expect(readAll("cloudevents", [JSON.stringify({ ...parsed(EVENT), receivedby: "broker" })])).toStrictEqual([EVENT]);
  });
});
