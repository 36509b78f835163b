// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fillIn, readConstants, simplify, withoutComments } from "./figures-in-documents.ts";
import { sourceFiles } from "./imports.ts";

const ROOT = join(import.meta.dirname, "../..");
const constants = readConstants(ROOT);
const sentences = Map.groupBy(
  readFileSync(join(import.meta.dirname, "limits.txt"), "utf8").matchAll(/^([^#:]+): (.+)$/gm),
  ([, file = ""]) => file,
);

/**
 * Returns a file's text (code without comments, a document without code blocks and test titles), and the sentences that
 * `limits.txt` requires in it, with the values of constants filled in.
 */
function read(file: string) {
  const lines = (sentences.get(file) ?? []).flatMap(([, , line = ""]) => line.split(" … "));
  const text = readFileSync(join(ROOT, file), "utf8");
  const prose = /\.tsx?$/.test(file)
    ? withoutComments(text)
    : text.replace(/^( *)```[\s\S]*?^\1```$|`[^`\n]* › [^`\n]*`/gm, "");
  return { text: simplify(prose), expected: lines.map((line) => fillIn(line, constants)) };
}

const toPattern = (sentence: string): RegExp =>
  new RegExp(`(?<![\\d.])${RegExp.escape(simplify(sentence))}(?!\\d)`, "g");

test.each([...sentences.keys()])("%s has its sentences of limits.txt, with the constants' values", (file) => {
  const { text, expected } = read(file);
  expect(expected.filter((sentence) => text.search(toPattern(sentence)) < 0)).toEqual([]);
});

/** Documents with many other figures: changes, measurements, and the duration of tests. */
const OTHER_FIGURES = /^(?:CHANGELOG|CONTRIBUTING|docs\/(?:performance|development))\.md$/;

/** Pattern of a figure in a text. A single second, minute or hour counts only as a limit: "a minute" may be a rate. */
const FIGURE =
  /(?<![\w.,:/-])(?:(?!1 (?:second|minute|hour|day)\b)|(?<=\b(?:within|once|each|every|for|than) )(?!1 day))\d[\d.]* ?(?:ms|s|second|min|minute|hour|day|[KMG]i?B|bytes|characters|digits|events|rows|letters|streams|levels|attempts|requests|recipients|links|positions|places)\b/g;

test("each figure with a unit in documents and texts of the code is in limits.txt", () => {
  const documents = ["*.md", "docs/*.md"].flatMap((glob) => [...new Bun.Glob(glob).scanSync(ROOT)]);
  const code = sourceFiles(ROOT).filter((file) => /^(?:src|projections)\//.test(file));
  const others = [...documents.filter((file) => !OTHER_FIGURES.test(file)), ...code].flatMap((file) => {
    const { text, expected } = read(file);
    const rest = expected.reduce((all, sentence) => all.replace(toPattern(sentence), ""), text);
    return [...rest.matchAll(FIGURE)].map(
      ({ 0: figure, index }) => `${file}: …${rest.slice(index - 30, index)}${figure}`,
    );
  });
  expect(others).toEqual([]);
});
