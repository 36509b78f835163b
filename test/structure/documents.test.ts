// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brokenLinks, brokenPaths, countWords, paragraphsOf, readDocuments } from "./documents.ts";

const ROOT = join(import.meta.dirname, "../..");
const documents = readDocuments(ROOT);
const decisions = documents.filter(({ path }) => /^docs\/decisions\/\d/.test(path));

const ARCHITECTURE_WORDS_MAX = 2_500;
const DECISIONS_MAX = 45;
const DECISION_WORDS_MAX = 140;
const PARAGRAPH_CHARACTERS_MAX = 500;

test("ARCHITECTURE.md has at most 2,500 words", () => {
  const architecture = documents.find(({ path }) => path === "ARCHITECTURE.md");
  expect(countWords(architecture?.text ?? "")).toBeWithin(500, ARCHITECTURE_WORDS_MAX + 1);
});

describe("a decision", () => {
  test("says what was decided, why, and at what cost, in at most 140 words", () => {
    expect(decisions.length).toBeWithin(30, DECISIONS_MAX + 1);
    const isWhole = (text: string): boolean =>
      /^# \d+\. .+\n\n(?!\*\*)[^]+?\n\n\*\*Why:\*\* .+\n\n\*\*Cost:\*\* .+\n(?:\n\*\*Rejected:\*\*\s+.+\n(?:- .+\n)*)?$/.test(
        text,
      );
    const wrong = decisions.filter(({ text }) => !isWhole(text) || countWords(text) > DECISION_WORDS_MAX);
    expect(wrong.map(({ path, text }) => [path, countWords(text)])).toEqual([]);
  });

  test("has a unique number, a title and a line in the index", () => {
    const numbers = decisions.map(({ path }) => Number(/\d+/.exec(path)?.[0]));
    expect(new Set(numbers).size).toBe(numbers.length);
    const index = documents.find(({ path }) => path === "docs/decisions/README.md")?.text ?? "";
    const lines = decisions.map(({ path, text }) => {
      const [, number, title] = /^# (\d+)\. (.+)$/m.exec(text) ?? [];
      return { path, number: Number(number), line: `- [${title}](${path.slice("docs/decisions/".length)})\n` };
    });
    expect(lines.map(({ number }) => number)).toEqual(numbers);
    expect(lines.filter(({ line }) => !index.includes(line)).map(({ path }) => path)).toEqual([]);
  });
});

test.each(documents.map(({ path }) => path))("%s has short paragraphs", (path) => {
  const paragraphs = paragraphsOf(documents.find((document) => document.path === path)?.text ?? "");
  const long = paragraphs.filter((paragraph) => paragraph.length > PARAGRAPH_CHARACTERS_MAX);
  expect(long.map((paragraph) => `${paragraph.length}: ${paragraph.slice(0, 60)}`)).toEqual([]);
});

test("every relative link leads to an existing file and heading", () => {
  const broken = documents.flatMap((document) =>
    brokenLinks(ROOT, document).map((link) => `${document.path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test("every path in backticks exists", () => {
  const broken = documents.flatMap((document) =>
    brokenPaths(ROOT, document).map((path) => `${document.path}: ${path}`),
  );
  expect(broken).toEqual([]);
});

describe("the table of guarantees", () => {
  const text = documents.find(({ path }) => path === "docs/promises.md")?.text ?? "";
  const rows = text
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, promise = "", ...cells]) => ({ promise, cells: cells.slice(0, -1) }))
    .filter(({ promise }) => promise !== "Promise" && !/^-+$/.test(promise));

  test("names existing tests in each cell", () => {
    expect(rows.length).toBeGreaterThan(10);
    const isProved = (cell: string): boolean => {
      const files = [...cell.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, file = ""]) => file);
      const isThere = (file: string): boolean => /\.(?:test|fault)\.ts$/.test(file) && existsSync(join(ROOT, file));
      return (
        /^(?:\(\d+\) |(?:if|where|does not hold)\b[^:]*: )?\[/.test(cell) && files.length > 0 && files.every(isThere)
      );
    };
    const wrong = rows.flatMap(({ promise, cells }) =>
      cells.filter((cell) => !isProved(cell)).map((cell) => `${promise}: ${cell}`),
    );
    expect(wrong).toEqual([]);
    expect(rows.filter(({ cells }) => cells.length !== 4)).toEqual([]);
  });

  test("explains each limit that it refers to", () => {
    const named = [...text.matchAll(/\| \((\d+)\) \[/g)].map(([, number]) => Number(number));
    const explained = [...text.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
    expect([...new Set(named)].sort((a, b) => a - b)).toEqual(explained);
  });
});

test("each message quoted in docs/troubleshooting.md occurs in the code", () => {
  const text = documents.find(({ path }) => path === "docs/troubleshooting.md")?.text ?? "";
  const quotes = [...text.matchAll(/^\| (?:\d{3} )?`([^`]+)`/gm)].flatMap(([, quote = ""]) => quote.split("…"));
  const files = ["src", "events"].flatMap((folder) => [
    ...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT, onlyFiles: true }),
  ]);
  const source = files
    .filter((file) => !file.includes("node_modules"))
    .map((file) => readFileSync(join(ROOT, file), "utf8"))
    .join("\n");
  expect(quotes.length).toBeGreaterThan(15);
  expect(quotes.filter((quote) => !source.includes(quote.trim()))).toEqual([]);
});

describe("the check itself", () => {
  test("counts prose and list items, but not tables and code", () => {
    const text = "# Title\n\nOne\nline.\n\n- a\n  goes on\n- b\n\n| x | y |\n| - | - |\n\n```\ncode\n```\n\n1. c\n";
    expect(paragraphsOf(text)).toEqual(["One line.", "- a goes on", "- b", "1. c"]);
  });

  test("finds broken links and paths", () => {
    const text =
      "[a](none.md) [b](README.md#none) [c](README.md) [d](https://x.example) `src/none.ts` `src/*.ts` `src/`";
    const document = { path: "X.md", text };
    expect(brokenLinks(ROOT, document)).toEqual(["none.md", "README.md#none"]);
    expect(brokenPaths(ROOT, document)).toEqual(["src/none.ts"]);
  });
});
