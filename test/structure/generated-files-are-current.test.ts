// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { headerOf, TYPES_FILE } from "../../clients/typescript/generate.ts";
import { describeApi, GENERATED, withGenerated } from "../../packaging/generate-api-documents.ts";

test("openapi.json is up to date", () => {
  const text = readFileSync(new URL("../../openapi.json", import.meta.url), "utf8");
  expect([JSON.parse(text), "write it again: bun run document"]).toEqual([
    JSON.parse(describeApi()),
    expect.any(String),
  ]);
});

test("the document and the client's types stay within their sizes", () => {
  const [document, types] = [new URL("../../openapi.json", import.meta.url), TYPES_FILE].map((file) =>
    readFileSync(file),
  );
  expect(document!.length).toBeLessThanOrEqual(300_000);
  expect(types!.toString().split("\n").length).toBeLessThanOrEqual(4_000);
});

test("the client's types are up to date", () => {
  const [header] = readFileSync(TYPES_FILE, "utf8").split("\n");
  expect([header, "generate it again: bun clients/typescript/generate.ts"]).toEqual([headerOf(), expect.any(String)]);
});

test.each(Object.entries(GENERATED))("the generated parts of %s are up to date", (guide, generate) => {
  const text = readFileSync(new URL(`../../${guide}`, import.meta.url), "utf8");
  expect([text, "write it again: bun run document"]).toEqual([withGenerated(text, generate()), expect.any(String)]);
});
