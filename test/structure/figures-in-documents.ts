import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sourceFiles } from "./imports.ts";

/** All declarations of constants, by name. */
export type Constants = ReadonlyMap<string, readonly { readonly file: string; readonly value: string }[]>;

export function readConstants(root: string): Constants {
  const found = sourceFiles(root).flatMap((file) =>
    [...withoutComments(readFileSync(join(root, file), "utf8")).matchAll(/\bconst (\w+)(?:: [^=]+)? = ([^;]+);/g)].map(
      ([, name = "", value = ""]) => ({ file, name, value }),
    ),
  );
  return Map.groupBy(found, ({ name }) => name);
}

/**
 * Removes comments. A `//` within a string is removed like a comment, which does no harm: no figure comes after one.
 */
export const withoutComments = (code: string): string => code.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");

const REFERENCE = /(?:([\w/-]+):)?\b([A-Za-z]\w+)((?:\.[\w-]+)*)/g;

/**
 * Evaluates an expression such as `FILE:NAME.member + 2 * NAME` in the unit of its constants. The file name is needed
 * if several files have the constant.
 */
function evaluate(expression: string, constants: Constants, here = ""): number {
  const numbers = expression.replace(REFERENCE, (_, file: string | undefined, name: string, members: string) => {
    const all = constants.get(name) ?? [];
    const own = all.filter((one) => one.file === here);
    const meant = file === undefined && own.length > 0 ? own : all.filter((one) => isNamed(one.file, file));
    const [only] = meant;
    if (only === undefined || meant.length > 1)
      throw new Error(`${meant.length} constants are meant by ${name}: FILE:${name} names one`);
    const path = members.split(".").slice(1);
    const value = path.reduce((text, member) => text.split(new RegExp(`\\b${member}"?: "?`))[1] ?? "", only.value);
    return `(${evaluate(value.split(/[,}"]/)[0] ?? "", constants, only.file)})`;
  });
  if (!/^[\d\s_().+*/-]+$/.test(numbers)) throw new Error(`not a figure: ${expression} (${numbers})`);
  // oxlint-disable-next-line typescript/no-implied-eval -- arithmetic of our own constants, as the line above makes sure
  return Number(new Function(`return ${numbers}`)());
}

const isNamed = (path: string, file: string | undefined): boolean =>
  file === undefined || path.replace(/\.tsx?$/, "").endsWith(`/${file}`);

const SECOND = 1_000;
const UNITS: Readonly<Record<string, number>> = {
  second: SECOND,
  s: SECOND,
  minute: 60 * SECOND,
  min: 60 * SECOND,
  hour: 3_600 * SECOND,
  day: 86_400 * SECOND,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  TiB: 2 ** 40,
};

/** Fills the constants' current values into a sentence, each in the unit that follows it. */
export function fillIn(sentence: string, constants: Constants): string {
  return sentence.replace(/\{([^}]+)\}(?= ?([A-Za-z]*))/g, (_, expression: string, word: string) => {
    const base = /_S(?:_|\b)|Seconds\b/.test(expression) ? SECOND : 1;
    const figure = (evaluate(expression, constants) * base) / (UNITS[word.replace(/s$/, "")] ?? UNITS[word] ?? base);
    return (Number.isInteger(figure) ? figure : Number(figure.toPrecision(2))).toLocaleString("en");
  });
}

const WORDS = "none one two three four five six seven eight nine ten eleven twelve".split(" ");
const NUMBERS = new Map([...WORDS.map((word, at) => [word, at] as const), ["fifty", 50], ["hundred", 100]]);

/**
 * Normalizes figures to digits, without commas, line breaks and plurals: `a thousand requests a second` becomes `1000
 * requests 1 second`.
 */
export function simplify(text: string): string {
  return text
    .replace(/\s*\n(?: *\* | *# | *\/\/ )?\s*|\s+/g, " ")
    .replace(/(?<=\d),(?=\d{3})/g, "")
    .replace(/\ba thousand\b/gi, "1000")
    .replace(/\btwice\b/gi, "2 times")
    .replace(/\ban?(?= (?:second|minute|hour|day)\b)/gi, "1")
    .replace(/\b(each|every)(?= (?:second|minute|hour|day)\b)/gi, "$1 1")
    .replace(/\b[a-z]+\b/gi, (word) => String(NUMBERS.get(word.toLowerCase()) ?? word))
    .replace(/\b(second|minute|hour|day)s\b/g, "$1");
}
