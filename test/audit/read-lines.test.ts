// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readLines } from "../../src/backup/import-exported-events.ts";

async function* inPieces(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array, void, void> {
  let start = 0;
  for (const cut of [...cuts.map((share) => Math.floor(share * bytes.length)).sort((a, b) => a - b), bytes.length]) {
    yield bytes.subarray(start, cut);
    start = cut;
  }
}

async function linesOf(content: string | Uint8Array, cuts: readonly number[] = []): Promise<string[]> {
  const lines: string[] = [];
  for await (const batch of readLines(inPieces(Buffer.from(content), cuts))) {
    expect(batch.first).toBe(lines.length + 1);
    lines.push(...batch.lines);
  }
  return lines;
}

async function faultOf(content: string | Uint8Array, cuts?: readonly number[]): Promise<string> {
  try {
    return JSON.stringify(await linesOf(content, cuts));
  } catch (fault) {
    expect(fault).toMatchObject({ kind: "invalid" });
    return (fault as Error).message;
  }
}

describe("lines", () => {
  test("are the same for any chunks of the file", async () => {
    const line = fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n]/g, ""));
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    const whole = fc.asyncProperty(
      fc.array(line, { minLength: 1 }),
      fc.constantFrom("\n", "\r\n"),
      fc.array(share, { maxLength: 5 }),
      async (lines, lineBreak, cuts) => {
        const text = lines.map((each) => each + lineBreak).join("");
        expect(await linesOf(text, cuts)).toEqual(lines);
      },
    );
    await fc.assert(whole, { numRuns: 300 });
  });

  test("may lack the last line break and begin with a byte order mark", async () => {
    expect(await linesOf("\ufeffa\r\nb\n\nc")).toEqual(["a", "b", "", "c"]);
    // The second text is also read in two pieces, the second of which begins with the second line. The result must be
    // the same.
    for (const cuts of [[], [0.3]]) expect(await linesOf("a\n\ufeffb\n", cuts)).toEqual(["a", "\ufeffb"]);
    expect(await linesOf("")).toEqual([]);
  });

  test("with invalid UTF-8 are refused with their number", async () => {
    const latin1 = Buffer.concat([Buffer.from("één\ntwee\n"), Buffer.from("dri\u00eb\nvier\n", "latin1")]);
    for (const cuts of [[], [0.2, 0.4, 0.6, 0.8]]) {
      expect(await faultOf(latin1, cuts)).toBe("line 3: it is not valid UTF-8; nothing was imported");
    }
    expect(await faultOf(Buffer.from("a\nb\nc\ud83d").subarray(0, -1))).toStartWith("line 3: it is not valid");
  });

  test("beyond the length limit are refused before they fill the memory", async () => {
    let given = 0;
    const endless = async function* () {
      yield Buffer.from("short\n");
      for (;;) {
        given += 1;
        yield Buffer.alloc(65_536, "x");
      }
    };
    const read = async () => {
      for await (const _batch of readLines(endless()));
    };
    expect(await read().catch(String)).toContain("line 2: it is longer than 1048576 bytes");
    expect(given).toBe(17);
  });
});
