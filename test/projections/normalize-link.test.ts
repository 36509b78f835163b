// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { normalizeLink, toLinkHost } from "../../projections/normalize-link.ts";
import { linkKey, toLinkKey } from "../../projections/link-keys-and-text-links.ts";

test.each([
  ["go.example", "spring"],
  ["GO.example", "spring"],
  ["go.example.", "spring"],
  ["go.example:443", "spring"],
  ["go.example:80", "spring"],
  ["go.example.:0443", "spring"],
  ["go.example:", "spring"],
  ["https://GO.example:443/", "spring"],
  [" go.example", "spring "],
  ["go.example", "/spring"],
  ["go.example", "//spring/"],
  ["go.example", "spring?utm_source=dm"],
  ["go.example", "/spring/?utm_source=dm#top"],
  ["go.example", "spring#top"],
  ["go.example", "%73pring"],
  ["go.example", "%2Fspring%3Futm_source%3Ddm"],
  ["go.example", "https://go.example/spring?x=1"],
])("%j with %j is the link go.example/spring", (domain, code) => {
  expect([normalizeLink(domain, code), linkKey(domain, code)]).toEqual([
    { domain: "go.example", shortCode: "spring" },
    "go.example/spring",
  ]);
});

test.each([
  ["reach.example/l", "spring"],
  ["reach.example", "/l/spring"],
  ["reach.example", "l//spring/"],
  ["reach.example/L/", "/l/spring"],
  ["reach.example:443/l", "spring"],
])("%j with %j is the link reach.example/l/spring", (domain, code) => {
  expect(linkKey(domain, code)).toBe("reach.example/l/spring");
});

test.each([
  ["go.example:8443", "spring", "go.example:8443/spring"],
  ["www.go.example", "spring", "www.go.example/spring"],
  ["[2001:DB8::1]:443", "x", "[2001:db8::1]/x"],
  ["[2001:db8::443]", "x", "[2001:db8::443]/x"],
  ["go.example", "Spring", "go.example/Spring"],
  ["go.example", "a/b", "go.example/a/b"],
  ["go.example", "caf%C3%A9", "go.example/café"],
  ["go.example", "100%", "go.example/100%"],
  ["go.example", "%2541", "go.example/%2541"],
  ["go.example/%", "%/%2Fa", "go.example/%/a"],
  ["go.example", "a%00%c2%85b", "go.example/a%00%c2%85b"],
  ["go.example", "/", "go.example//"],
  ["go.example", "?x=1", "go.example//"],
])("%j with %j is the link %j", (domain, code, key) => {
  expect(linkKey(domain, code)).toBe(key);
});

test("a link given as one text has the same key", () => {
  expect(["https://GO.example:443/%73pring/?x=1", "go.example./spring"].map(toLinkKey)).toEqual(
    Array(2).fill("go.example/spring"),
  );
});

test("a normalized link stays the same when normalized again and has no control character", () => {
  const piece = fc.constantFrom(
    ..."aA.:/%?# 0248".split(""),
    "%2",
    "%25",
    "%2F",
    "%0a",
    "443",
    "http://",
    "é",
    "[",
    "]",
  );
  const text = fc.oneof(
    fc.array(piece, { minLength: 1, maxLength: 12 }).map((all) => all.join("")),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }),
  );
  const isTaken = (one: string): boolean => !/\p{Cc}/u.test(one) && one.isWellFormed();
  fc.assert(
    fc.property(text.filter(isTaken), text.filter(isTaken), (domain, code) => {
      const once = normalizeLink(domain, code);
      expect(normalizeLink(once.domain, once.shortCode)).toEqual(once);
      expect([once.shortCode.length > 0, isTaken(`${once.domain}/${once.shortCode}`)]).toEqual([true, true]);
    }),
    { numRuns: 2_000 },
  );
});

test.each(["go.example", "www.GO.example.", "go.example:8443", "WWW.go.example:443/l", "https://go%2Eexample/"])(
  "the host of %j is go.example",
  (domain) => {
    expect(toLinkHost(domain)).toBe("go.example");
  },
);

test("a host is the same in Unicode and in Punycode", () => {
  expect([toLinkHost("BÜCHER.example"), toLinkHost("xn--bcher-kva.example")]).toEqual(
    Array(2).fill("xn--bcher-kva.example"),
  );
});
