// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { sourceFiles } from "./imports.ts";

/**
 * Words that file names and exported names of this code must no longer contain, each with the common technical term
 * that replaces it.
 */
const DIALECT: Readonly<Record<string, string>> = {
  journal: "event log",
  fact: "new event",
  cause: "metadata",
  tell: "append, record, announce, say which",
  told: "appended, recorded, announced, say which",
  owe: "request a dispatch",
  owed: "pending dispatch, source position",
  owes: "requests a dispatch",
  flight: "dispatch",
  carriage: "dispatch mode",
  landing: "completed",
  stretch: "chunk",
  courtesy: "intake priority",
  turns: "coalescing scheduler",
  doubts: "deduplication window",
  stoppage: "suspension",
  throttle: "rate limiter",
  patience: "retry policy",
  patient: "retry",
  impatient: "retry",
  marks: "suppression hashes",
  exclusive: "lease",
  lasting: "stable",
  box: "ciphertext",
  boxes: "ciphertexts",
  sealed: "encrypted",
  sealing: "encryption",
  belief: "freshness",
  heed: "apply",
  unsteered: "escape control characters",
  suspects: "suspected",
  mend: "fix",
};

const root = join(import.meta.dirname, "../..");

/**
 * Files whose names are checked: all but those of the sandbox, which imitates other companies' servers and uses their
 * words.
 */
const files = sourceFiles(root).filter((file) => !file.startsWith("sandbox/"));

/** The words that a name consists of, in lower case. */
function wordsOf(name: string): readonly string[] {
  return name.split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/).map((word) => word.toLowerCase());
}

/** Pattern of the term "in flight", which is used everywhere, so its words are not checked. */
const IN_FLIGHT = /in[-_ ]?flight/gi;

function dialectIn(name: string): readonly string[] {
  return wordsOf(name.replace(IN_FLIGHT, "")).flatMap((word) =>
    Object.hasOwn(DIALECT, word) ? [`${name}: ${word} → ${DIALECT[word]}`] : [],
  );
}

test("file names use the field's words", () => {
  expect(files.flatMap((file) => dialectIn(basename(file, ".ts")))).toEqual([]);
});

const EXPORTED = /^export (?:async )?(?:const|function\*?|class|interface|type) (\w+)/gm;

test("exported names use the field's words", () => {
  const found = files.flatMap((file) =>
    [...readFileSync(join(root, file), "utf8").matchAll(EXPORTED)].flatMap(([, name = ""]) => dialectIn(name)),
  );
  expect(found).toEqual([]);
});

test.each(["createJournal", "OWED_MAX", "tell-around", "XMLBox"])("%s is reported", (name) => {
  expect(dialectIn(name)).toHaveLength(1);
});

test.each(["Mailbox", "factory", "untold"])("%s is not reported", (name) => {
  expect(dialectIn(name)).toEqual([]);
});
