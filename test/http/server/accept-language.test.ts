// These tests call the code directly.
import { expect, test } from "bun:test";
import { readLanguage } from "../../../src/http/server/accept-language.ts";

test.each([
  [undefined, "en-GB"],
  ["", "en-GB"],
  ["*", "en-GB"],
  ["en", "en-GB"],
  ["en-US,en;q=0.9", "en-US"],
  ["de-AT, de;q=0.8", "de-AT"],
  ["DE", "de"],
  ["de-DE-u-ca-buddhist-nu-thai", "de-DE"],
  ["x-klingon, fr", "fr"],
  [`${"a".repeat(500)}, fr`, "en-GB"],
])("a browser that prefers %p reads times in the formats of %s", (header, language) => {
  const headers = header === undefined ? {} : { "accept-language": header };
  expect(readLanguage(new Request("http://localhost/", { headers }))).toBe(language);
});
