import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readDocuments } from "./documents.ts";
import { roomOf } from "./layer-order.ts";
import { importsOf, sourceFiles } from "./imports.ts";

/** Sizes that make the product harder to change; each has an upper limit in code-size-and-wording-limits.test.ts. */
export interface Measures {
  /** Number of files in the fullest folder, without its subfolders. */
  readonly filesInAFolder: number;
  readonly linesInAFile: number;
  /**
   * Files with at most {@link SMALL_LINES} lines and a single importing file, which is in the same part (top folder) of
   * the code. Files of commands do not count: only the list of commands imports them, and they are small on purpose.
   */
  readonly smallFilesWithOneImporter: readonly string[];
  /** Functions whose name ends in `Of`. */
  readonly functionsNamedOf: readonly string[];
  /** Names that several files of `src` export. */
  readonly namesExportedTwice: readonly string[];
  /**
   * Files of `src` with a `Pick<…>` type, once for each use. Instead, a function should take a named context, or the
   * value that it needs.
   */
  readonly picks: readonly string[];
  /**
   * Files of `src` that start the projections of a log. Only one should: the one that opens a log with everything that
   * belongs to it.
   */
  readonly filesOpeningALog: readonly string[];
  /**
   * Number of pronouns in `src` that stand for an actor: the caller, the operator, the recipient, the instance, the
   * network.
   */
  readonly pronouns: number;
  /**
   * Number of indefinite pronouns in the documents for operators and developers. A document should name the actor
   * instead: the caller, the operator, the recipient.
   */
  readonly pronounsInDocuments: number;
  /** Number of pronouns for an actor in tests, except where they are part of a network's names. */
  readonly pronounsInTests: number;
  /** Comments that begin with a relative pronoun or "Of", have over 240 characters, or more than three sentences. */
  readonly riddles: readonly string[];
  /** Files that contain an old-fashioned word for "again", which the house style avoids. */
  readonly filesSayingAnew: readonly string[];
  /** Tests with a time limit of their own. Only the whole run has a limit, because a slow machine is no failure. */
  readonly testsWithALimit: readonly string[];
}

export const SMALL_LINES = 60;

const FUNCTION_NAMED_OF =
  /\bfunction\*?\s+(\w+Of)\b|\bconst\s+(\w+Of)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\([^)]*\)|\w+)(?::[^=]+)?\s*=>/g;
const EXPORTED = /^export\s+(?:async\s+)?(?:function\*?|const|interface|type|class)\s+(\w+)/gm;
const PICK = /\bPick</g;
/** The last line of a test with a time limit after its function. */
const OWN_LIMIT = /^\s*\},? \d[\d_]*\);$/gm;
const STARTS_PROJECTIONS = /(?<!function )\bstartProjector\(/;
const PRONOUNS = /\b(?:somebody|someone|nobody|anybody|anyone|everybody|everyone|whoever|whom|whomever)\b/gi;

/** Patterns of all files that people write, except documents, and of files generated from these. */
const WRITTEN = [
  "{clients,deploy,events,packaging,projections,sandbox,src,test}/**/*.{ts,tsx,js,css,sql,yml,yaml}",
  "*.json",
];

const ACTORS_ARE_NAMED = /^(?:docs\/|(?:README|ARCHITECTURE|SECURITY|CHANGELOG)\.md$)/;

export function measure(root: string): Measures {
  const all = sourceFiles(root);
  const files = all.filter((file) => file.startsWith("src/"));
  const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  const lines = new Map([...texts].map(([file, text]) => [file, text.split("\n").length - 1]));
  const importers = Map.groupBy(importsOf(root, all), ({ to }) => to);
  const folders = Map.groupBy(files, (file) => dirname(file));
  const documents = readDocuments(root);
  const exporters = Map.groupBy(
    [...texts].flatMap(([file, text]) => [...text.matchAll(EXPORTED)].map(([, name = ""]) => ({ file, name }))),
    ({ name }) => name,
  );
  return {
    filesInAFolder: Math.max(...[...folders.values()].map((inside) => inside.length)),
    linesInAFile: Math.max(...lines.values()),
    smallFilesWithOneImporter: files.filter((file) => {
      if (/^src\/commands\/(?!shared\/)/.test(file)) return false;
      const from = new Set(importers.get(file)?.map((one) => one.from));
      const [only = ""] = from;
      return lines.get(file)! <= SMALL_LINES && from.size === 1 && roomOf(only) === roomOf(file);
    }),
    functionsNamedOf: [...texts].flatMap(([file, text]) =>
      [...text.matchAll(FUNCTION_NAMED_OF)].map(([, one, other]) => `${file} ${one ?? other}`),
    ),
    namesExportedTwice: [...exporters]
      .filter(([, where]) => new Set(where.map(({ file }) => file)).size > 1)
      .map(([name, where]) => `${name} (${where.map(({ file }) => file).join(", ")})`),
    picks: [...texts].flatMap(([file, text]) => (text.match(PICK) ?? []).map(() => file)),
    filesOpeningALog: [...texts].flatMap(([file, text]) => (STARTS_PROJECTIONS.test(text) ? [file] : [])),
    pronouns: countIn(texts.values(), PRONOUNS),
    pronounsInDocuments: countIn(
      documents.flatMap(({ path, text }) => (ACTORS_ARE_NAMED.test(path) ? [text] : [])),
      PRONOUNS,
    ),
    pronounsInTests: countIn(
      [...textsOf(root, ["test/**/*.ts"])].flatMap(([file, text]) =>
        file.startsWith("test/structure/") ? [] : [text],
      ),
      new RegExp(`(?<![@"])${PRONOUNS.source}`, "gi"),
    ),
    riddles: [...textsOf(root, ["{clients,deploy,events,packaging,projections,sandbox,src,test}/**/*.{ts,tsx,js}"])]
      .filter(([file]) => !file.startsWith("clients/typescript/src/"))
      .flatMap(([file, text]) => commentsIn(text).flatMap((one) => (isRiddle(one) ? [`${file}: ${one}`] : []))),
    filesSayingAnew: [...textsOf(root, WRITTEN), ...documents.map(({ path, text }) => [path, text] as const)]
      .filter(([file, text]) => !file.startsWith("test/structure/") && /\banew\b/i.test(text))
      .map(([file]) => file),
    testsWithALimit: [...textsOf(root, ["{clients,events,sandbox,test}/**/*.test.{ts,tsx}"])].flatMap(([file, text]) =>
      [...text.matchAll(OWN_LIMIT)].map(([limit]) => `${file}: ${limit.trim()}`),
    ),
  };
}

const BLOCK = /^[ \t]*\{?\/\*\*?([^]*?)\*\//gm;
const LINES = /^[ \t]*\/\/ .*(?:\n[ \t]*\/\/ .*)*/gm;

/** The comments of a source file that stand on lines of their own, each on one line. */
function commentsIn(text: string): readonly string[] {
  const blocks = [...text.matchAll(BLOCK)].map(([, inside = ""]) => inside.replaceAll(/\s*\n\s*\*? ?/g, " "));
  const lines = [...text.matchAll(LINES)].map(([all]) => all.replaceAll(/^[ \t]*\/\/ /gm, "").replaceAll("\n", " "));
  return [...blocks, ...lines].map((one) => one.trim());
}

const COMMENT_CHARS_MAX = 240;
const SENTENCES_MAX = 3;

function isRiddle(comment: string): boolean {
  const sentences = comment.match(/[.!?](?:\s|$)/g)?.length ?? 0;
  const begins = /^(?:Of|Those|That|What|Which|Who|Whose|Whether)\b/.test(comment);
  return begins || comment.length > COMMENT_CHARS_MAX || sentences > SENTENCES_MAX;
}

function textsOf(root: string, globs: readonly string[]): ReadonlyMap<string, string> {
  const files = globs.flatMap((glob) => [...new Bun.Glob(glob).scanSync(root)]);
  const own = files.filter((file) => !/(?:^|\/)(?:node_modules|dist)\//.test(file));
  return new Map(own.map((file) => [file, readFileSync(join(root, file), "utf8")]));
}

function countIn(texts: Iterable<string>, pattern: RegExp): number {
  return sum([...texts].map((text) => text.match(pattern)?.length ?? 0));
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((total, one) => total + one, 0);
}
