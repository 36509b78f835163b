// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { toDigest } from "../../src/delivery/attempt-dispatches.ts";
import type { Click } from "../../src/networks/network.ts";

function click(second: number, shortCode: string, bot = false): Click {
  return {
    kind: "click",
    id: `id-${second}`,
    time: new Date(Date.parse("2026-11-20T10:00:00.000Z") + second * 1_000).toISOString(),
    event: "click",
    domain: "go.example",
    shortCode,
    originalUrl: "https://example.com",
    normalizedUrl: "https://example.com/",
    ip: undefined,
    userAgent: undefined,
    bot,
  };
}

test("a digest groups clicks by link, the most clicked first", () => {
  expect(toDigest("d", [click(1, "a"), click(2, "b", true), click(3, "b"), click(4, "b")])).toEqual({
    kind: "digest",
    id: "d",
    time: "2026-11-20T10:00:04.000Z",
    clicks: 4,
    bots: 1,
    links: [
      {
        domain: "go.example",
        shortCode: "b",
        clicks: 3,
        bots: 1,
        first: "2026-11-20T10:00:02.000Z",
        last: "2026-11-20T10:00:04.000Z",
      },
      {
        domain: "go.example",
        shortCode: "a",
        clicks: 1,
        bots: 0,
        first: "2026-11-20T10:00:01.000Z",
        last: "2026-11-20T10:00:01.000Z",
      },
    ],
  });
});

test("a digest counts every click in exactly one group", () => {
  const some = fc.array(fc.record({ code: fc.constantFrom("a", "b", "__proto__", "constructor"), bot: fc.boolean() }), {
    minLength: 1,
    maxLength: 200,
  });
  fc.assert(
    fc.property(some, (clicks) => {
      const digest = toDigest(
        "d",
        clicks.map(({ code, bot }, second) => click(second, code, bot)),
      );
      if (digest.kind !== "digest") throw new Error("no digest");
      const sum = (of: "clicks" | "bots") => digest.links.reduce((total, link) => total + link[of], 0);
      expect([digest.clicks, digest.bots]).toEqual([sum("clicks"), sum("bots")]);
      expect(digest.clicks).toBe(clicks.length);
    }),
  );
});
