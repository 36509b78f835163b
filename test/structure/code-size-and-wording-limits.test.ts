// These tests call the code directly.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { measure } from "./code-size-measures.ts";

const measured = measure(join(import.meta.dirname, "../.."));

/**
 * Upper limits of the code measures, equal to the values of today. A change that lowers a value must lower its limit
 * here too.
 */
const LIMITS = {
  filesInAFolder: 25,
  linesInAFile: 400,
  smallFilesWithOneImporter: 4,
  functionsNamedOf: 0,
  namesExportedTwice: 0,
  picks: 6,
  filesOpeningALog: 1,
  pronouns: 0,
  pronounsInDocuments: 0,
  pronounsInTests: 0,
  riddles: 0,
  filesSayingAnew: 0,
  testsWithALimit: 0,
};

test.each(Object.entries(LIMITS))("%s: at most %d", (name, limit) => {
  const figure = measured[name as keyof typeof LIMITS];
  const count = typeof figure === "number" ? figure : figure.length;
  expect(count <= limit ? [] : figure).toEqual([]);
});
