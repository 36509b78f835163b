// These tests call the code directly.
import { expect, test } from "bun:test";
import { linksIn } from "../../projections/link-keys-and-text-links.ts";

const CASES: readonly (readonly [text: string, links: readonly string[]])[] = [
  ["Hi Ada: https://go.example/welcome", ["go.example/welcome"]],
  ["http://go.example/x and go.example/y", ["go.example/x", "go.example/y"]],
  ["the same: go.example/x, https://go.example/x", ["go.example/x"]],
  ["HTTPS://Go.Example/AbC", ["go.example/AbC"]],
  ["Have a look at go.example/x.", ["go.example/x"]],
  ["Really? go.example/x?!", ["go.example/x"]],
  ["(see go.example/x) “https://go.example/y”", ["go.example/x", "go.example/y"]],
  ["at:https://go.example/x→", ["go.example/x→"]],
  ["https://go.example/x?utm_source=dm#top", ["go.example/x"]],
  ["https://go.example/a/b_c-", ["go.example/a/b_c-"]],
  ["http://localhost:3000/x", ["localhost:3000/x"]],
  ["go.example:8080/x", ["go.example:8080/x"]],
  ["кто.example/x", ["кто.example/x"]],
  ["and/or, w/o, 24/7", []],
  ["mail me@go.example/x", []],
  ["https://go.example", []],
  ["https://go.example/", []],
  [`https://go.example/${"x".repeat(1_000)}`, []],
  ["", []],
];

test.each(CASES)("the links in the text %j are found", (text, links) => {
  expect(linksIn(text)).toEqual(links);
});

test("only the first ten links of a text are found", () => {
  const links = Array.from({ length: 50 }, (_, at) => `go.example/${at}`);
  expect(linksIn(links.join(" "))).toEqual(links.slice(0, 10));
});
