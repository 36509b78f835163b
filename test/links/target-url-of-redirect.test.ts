// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { toRedirectUrl } from "../../src/links/target-url-of-redirect.ts";
import { toTarget } from "../../src/template/short-link.ts";
import { isWhole } from "../harness/case-count.ts";

const PASS = { passQuery: ["utm_*", "gclid"], clickParam: "rl_click", clickId: "0195-id" };

test.each([
  ["https://shop.example/", "", "https://shop.example/?rl_click=0195-id"],
  ["https://shop.example/?", "", "https://shop.example/?rl_click=0195-id"],
  ["https://shop.example/?a=%41&", "", "https://shop.example/?a=%41&rl_click=0195-id"],
  ["https://shop.example/?a=b#/top?c", "", "https://shop.example/?a=b&rl_click=0195-id#/top?c"],
  ["https://shop.example/?utm_source=dm", "utm_source=x", "https://shop.example/?utm_source=dm&rl_click=0195-id"],
  ["https://shop.example/?rl_click=mine", "", "https://shop.example/?rl_click=mine"],
  [
    "https://shop.example/",
    "utm_source=dm&utm_source=b&gclid=1&gclid2=2&xutm_a=3&UTM_A=4&fbclid=5&rl_click=forged&utm_=%26%23",
    "https://shop.example/?utm_source=dm&utm_source=b&gclid=1&utm_=%26%23&rl_click=0195-id",
  ],
  ["https://shop.example/", `utm_a=${"x".repeat(2_043)}`, "https://shop.example/?rl_click=0195-id"],
])("%s opened with %j leads to %s", (target, query, landing) => {
  expect(toRedirectUrl(target, { ...PASS, query })).toBe(landing);
});

test("a target stays as it is if nothing is to be added", () => {
  const none = { passQuery: [], clickParam: undefined, clickId: "x", query: "utm_source=dm" };
  expect(toRedirectUrl("https://shop.example/?a=%41#b", none)).toBe("https://shop.example/?a=%41#b");
});

/** Texts in the visitor's query that could try to break out of the query of the target's URL. */
const HOSTILE = [
  "&",
  "=",
  "#",
  "?",
  "/",
  "\\",
  "@",
  ":",
  "%0d%0a",
  "\r\n",
  "%00",
  "%",
  "%ff",
  "\ud800",
  "//evil.example",
  "utm_a",
  "rl_click",
];
const part = fc.array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: "binary", maxLength: 4 })), {
  maxLength: 8,
});
const target = fc
  .tuple(fc.webUrl({ withQueryParameters: true, withFragments: true }), part)
  .map(([url, more]) => url + more.join(""));

test("any query leads only to the target, with named parameters after its own", () => {
  const runs = { numRuns: isWhole ? 100_000 : 2_000 };
  const property = fc.property(target, part, (raw, query) => {
    const before = toTarget(raw);
    fc.pre(before !== undefined);
    const url = toRedirectUrl(before, { ...PASS, query: query.join("") });
    expect(url).toMatch(/^[\x21-\x7e]+$/);
    const [was, now] = [new URL(before), new URL(url)];
    for (const name of ["origin", "username", "password", "pathname", "hash"] as const)
      expect(now[name]).toBe(was[name]);
    expect(now.search).toStartWith(was.search);
    const added = new URLSearchParams(now.search.slice(was.search.length));
    for (const name of added.keys()) expect(name).toMatch(/^(?:utm_[^]*|gclid|rl_click)$/u);
    expect(now.searchParams.getAll("rl_click")).toEqual(
      was.searchParams.has("rl_click") ? was.searchParams.getAll("rl_click") : ["0195-id"],
    );
  });
  fc.assert(property, runs);
});
