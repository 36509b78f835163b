// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatEnvValue, parseEnvFile } from "../../src/config/env-file.ts";

const parse = (text: string, given: Record<string, string> = {}) => parseEnvFile(text, ".env", given);

function refusals(text: string, given: Record<string, string> = {}): string[] {
  return parse(text, given).faults.map(({ variable, problem }) => `${variable}: ${problem}`);
}

describe("a value in .env", () => {
  test.each([
    ["get $50 off", "get $50 off"],
    ["'get $50 off'", "get $50 off"],
    ['"get $50 off"', "get $50 off"],
    ["code SAVE#1: https://shop.example/#offer", "code SAVE#1: https://shop.example/#offer"],
    ["#buildinpublic from:acme", "#buildinpublic from:acme"],
    ["it's 5 o'clock", "it's 5 o'clock"],
    ['{"a":"b"}', '{"a":"b"}'],
    [String.raw`C:\data\new`, String.raw`C:\data\new`],
    [String.raw`'one\ntwo'`, String.raw`one\ntwo`],
    [String.raw`"one\ntwo\t\"three\" \\ \$HOME"`, 'one\ntwo\t"three" \\ $HOME'],
    ["`one \"two\" 'three' $HOME`", "one \"two\" 'three' $HOME"],
    ["'one\n\n---\n# two\nA=b'", "one\n\n---\n# two\nA=b"],
    ['"one\r\ntwo"', "one\ntwo"],
    ["`one\ntwo`", "one\ntwo"],
    ["one\u2028two", "one\u2028two"],
    ["3000 # the port", "3000"],
    ["'3000' # the port", "3000"],
    [" # not set", ""],
    ["", ""],
    ['""', ""],
    ["  spaced  ", "spaced"],
    ["https://x.example/?a=b", "https://x.example/?a=b"],
  ])("NAME=%s has the value %j", (written, value) => {
    const read = parse(`# a comment\n\nexport NAME=${written}\nNEXT = 1\n`, { HOME: "/root" });
    expect(read).toEqual({ values: { NAME: value, NEXT: "1" }, faults: [] });
  });
});

describe("an ambiguous line", () => {
  test.each([
    [
      "A=1\nB=Hi {{name}},\nhere is more\n---\n",
      [".env line 3: neither NAME=value", ".env line 4: neither NAME=value"],
    ],
    ["A=1\nB='one\ntwo\nC=3\n", [".env line 2: B: the quote ' is not closed"]],
    ['A="one" two\nB=1', [".env line 1: A: text follows the closing quote"]],
    ["A='one\ntwo' three", [".env line 1: A: text follows the closing quote"]],
    [String.raw`A="\d"`, [".env line 1: A: holds a backslash that escapes nothing"]],
    [String.raw`A=\$50`, [String.raw`.env line 1: A: holds \$`]],
    [String.raw`A='\$50'`, [String.raw`.env line 1: A: holds \$`]],
    ["A=we are #1 here", [".env line 1: A: a # after a space is a comment for some programs"]],
    ["A=we are # one", [".env line 1: A: a # after a space"]],
    ["A= #one", [".env line 1: A: a # after a space"]],
    ["A=# one", [".env line 1: A: a # after a space"]],
    ["MESSAGE_TEMPLATE=Hi # one", [".env line 1: MESSAGE_TEMPLATE: a # after a space"]],
    ["A=1\nB=${A}", [".env line 2: B: ${…} is not replaced"]],
    ["A=1\nB=$A", [".env line 2: B: $A is not replaced"]],
    ['A="$HOME/x"', [".env line 1: A: $HOME is not replaced"]],
    ["A=1\n\nA=2", [".env line 3: A has another value on line 1"]],
    ["A: 1", [".env line 1: neither NAME=value"]],
    ["A", [".env line 1: neither NAME=value"]],
    ["A=one\u0007", [".env line 1: A: holds a control character"]],
    ["A='one\rtwo'", [".env line 1: A: holds a control character"]],
    ['A="\\', [".env line 1: A: the quote"]],
  ])("is refused with its number: %j", (text, wanted) => {
    const found = refusals(text, { HOME: "/root" });
    expect(found).toEqual(wanted.map((start) => expect.stringContaining(start)));
  });

  test("is refused without its value", () => {
    const faulty = ["S=\\$hunter2", "S='hunter2", 'S="hunter2" x', "hunter2", "S=hunter2 x #1", "S=${hunter2}"];
    for (const text of faulty) expect(JSON.stringify(parse(text).faults)).not.toContain("hunter2");
  });
});

test("a repeated setting with the same value is accepted", () => {
  expect(parse("A=1\nA=1")).toEqual({ values: { A: "1" }, faults: [] });
});

test("any quoted text is read back unchanged", () => {
  const plain = fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\p{Cc}]/gu, "\n").replaceAll("\\$", "$"));
  fc.assert(
    fc.property(plain, (text) => {
      const escaped = text.replace(/["\\$]/g, "\\$&");
      expect(parse(`A="${escaped}"\nB=1`)).toEqual({ values: { A: text, B: "1" }, faults: [] });
      if (!text.includes("'")) expect(parse(`A='${text}'\nB=1`).values).toEqual({ A: text, B: "1" });
      if (!text.includes("`")) expect(parse(`A=\`${text}\`\nB=1`).values).toEqual({ A: text, B: "1" });
    }),
  );
});

test("an unquoted value is read literally or refused", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const { values, faults } = parse(`A=${text}`);
      const isQuoted = /^\s*["'`]/.test(text);
      const isComment = /[ \t]#(?:[ \t]|$)/.test(` ${text}`) || /^\s*#/.test(text);
      if (faults.length === 0 && !isQuoted && !isComment) expect(values["A"]).toBe(text.trim());
    }),
  );
});

test("a written value is read back unchanged", () => {
  const texts = fc.string({ unit: fc.constantFrom(...Array.from("ab '\"`\\$#{}\n=-ü")) });
  fc.assert(
    fc.property(texts, (text) => {
      expect(parse(`A=${formatEnvValue(text)}\nB=1`)).toEqual({ values: { A: text, B: "1" }, faults: [] });
    }),
  );
});
