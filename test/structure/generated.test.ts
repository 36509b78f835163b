// On no harness.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { headerOf, TYPES_FILE } from "../../clients/typescript/generate.ts";
import { describeApi, TABLES, withTable } from "../../packaging/document.ts";

test("openapi.json is the document of the API as it is", () => {
  const text = readFileSync(new URL("../../openapi.json", import.meta.url), "utf8");
  expect([JSON.parse(text), "write it again: bun run document"]).toEqual([
    JSON.parse(describeApi()),
    expect.any(String),
  ]);
});

test("the types of the client are of the API as it is", () => {
  const [header] = readFileSync(TYPES_FILE, "utf8").split("\n");
  expect([header, "generate it again: bun clients/typescript/generate.ts"]).toEqual([headerOf(), expect.any(String)]);
});

test.each(Object.entries(TABLES))("the table in %s is that of the endpoints as they are", (guide, rows) => {
  const text = readFileSync(new URL(`../../${guide}`, import.meta.url), "utf8");
  expect([text, "write it again: bun run document"]).toEqual([withTable(text, rows()), expect.any(String)]);
});
