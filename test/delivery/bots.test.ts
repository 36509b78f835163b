import { describe, expect, test } from "bun:test";
import { isBot } from "../../src/delivery/bots.ts";
import userAgents from "../fixtures/user-agents.json";

describe("user agents as they come", () => {
  test.each(userAgents)("$ua", ({ ua, bot }) => {
    expect(isBot(ua)).toBe(bot);
    expect(isBot(ua)).toBe(bot);
  });
});

test("a user agent that was not passed on is no evidence of a bot", () => {
  expect(isBot(undefined)).toBe(false);
});

test("the verdict stays right when far more user agents come than are remembered", () => {
  for (let version = 0; version < 5000; version++) {
    expect(isBot(`crawler/${version}.0 (bot)`)).toBe(true);
    expect(
      isBot(`Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:${version}.0) Gecko/20100101 Firefox/${version}.0`),
    ).toBe(false);
  }
  for (const { ua, bot } of userAgents) expect(isBot(ua)).toBe(bot);
});

test("a hostile user agent of the longest length costs little", () => {
  const hostile = ["a", "Mozilla/5.0 (", "a.", "- ", "/1.", "\u00e9"].map((piece) => piece.repeat(1024).slice(0, 1024));
  const start = performance.now();
  for (let round = 0; round < 100; round++) for (const ua of hostile) isBot(`${ua}${round}`);
  // 600 calls; a second would mean an expression that backtracks without bound.
  expect(performance.now() - start).toBeLessThan(1000);
});
