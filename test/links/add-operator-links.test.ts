// These tests call the code directly.
import { expect, test } from "bun:test";
import { links, type Links } from "../../projections/links.ts";
import { decideLinks, STORED_LINKS_MAX } from "../../src/links/add-operator-links.ts";

const known = (): Links => {
  const state = links.initial();
  state.shared.set("spring", { domain: "go.example", target: "https://shop.example/", added_at: "2026-03-01" });
  return state;
};

test("new links are added with a normalized target, and a repeat changes nothing", () => {
  const given = [
    { code: "summer", target: "HTTPS://Shop.Example" },
    { code: "spring", target: "https://shop.example" },
    { code: "summer", target: "https://shop.example/" },
  ];
  expect(decideLinks(known(), "go.example", given)).toEqual({
    events: [{ type: "LinkAdded", data: { domain: "go.example", code: "summer", target: "https://shop.example/" } }],
    known: 2,
    refused: [],
  });
});

test.each([
  ["spring", "https://elsewhere.example/", "the code already has another target"],
  ["a/b", "https://shop.example/", "the code needs 1 to 64 letters, digits, _ or -"],
  ["", "https://shop.example/", "the code needs 1 to 64 letters, digits, _ or -"],
  ["ok", "javascript:alert(1)", "the target is not an http or https URL"],
  ["ok", `https://shop.example/${"x".repeat(4_096)}`, "the target is not an http or https URL"],
  ["1234567892", "https://shop.example/", "codes of 10 and 13 letters and digits are for messages"],
  ["7HxQp2MvkZ9bC", "https://shop.example/", "codes of 10 and 13 letters and digits are for messages"],
])("%j to %j is refused: %s", (code, target, reason) => {
  expect(decideLinks(known(), "go.example", [{ code, target }])).toEqual({
    events: [],
    known: 0,
    refused: [{ code, reason }],
  });
});

test("a log with the maximum of links refuses new ones, and still accepts known ones", () => {
  const state = links.initial();
  for (let at = 0; at < STORED_LINKS_MAX; at++)
    state.shared.set(`c${at}`, { domain: "go.example", target: "https://shop.example/", added_at: "2026-03-01" });
  const given = ["c1", "more"].map((code) => ({ code, target: "https://shop.example/" }));
  const reason = "the log holds 100000 links, and takes no more";
  expect(decideLinks(state, "go.example", given)).toEqual({
    events: [],
    known: 1,
    refused: [{ code: "more", reason }],
  });
});
