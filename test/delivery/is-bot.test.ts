// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import crawlers from "crawler-user-agents";
import { isBot, OF_PEOPLE } from "../../src/delivery/is-bot.ts";
import userAgents from "../fixtures/user-agents.json";

describe("a real user agent", () => {
  test.each(userAgents)("is classified correctly: $ua", ({ ua, bot }) => {
    expect(isBot(ua)).toBe(bot);
    expect(isBot(ua)).toBe(bot);
  });
});

test("a missing user agent does not count as a bot", () => {
  expect(isBot(undefined)).toBe(false);
});

test("the verdict stays right after far more user agents than the cache holds", () => {
  for (let version = 0; version < 5000; version++) {
    expect(isBot(`crawler/${version}.0 (bot)`)).toBe(true);
    expect(
      isBot(`Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:${version}.0) Gecko/20100101 Firefox/${version}.0`),
    ).toBe(false);
  }
  for (const { ua, bot } of userAgents) expect(isBot(ua)).toBe(bot);
});

test("each crawler in crawler-user-agents is a bot, except for patterns that match people", () => {
  const listed = crawlers.filter(({ pattern }) => !OF_PEOPLE.has(pattern)).flatMap(({ instances }) => instances);
  expect(listed.filter((ua) => !isBot(ua))).toEqual([]);
});

test("each pattern that matches people is still in crawler-user-agents", () => {
  const patterns = new Set(crawlers.map(({ pattern }) => pattern));
  expect([...OF_PEOPLE].filter((pattern) => !patterns.has(pattern))).toEqual([]);
});

test("a hostile user agent of maximum length is classified without endless backtracking", () => {
  const pieces = ["a", "Mozilla/5.0 (", "a.", "- ", "/1.", "\u00e9", "Spider", "Current"];
  const hostile = pieces.map((piece) => piece.repeat(1024).slice(0, 1024));
  // A pattern with unlimited backtracking would take practically for ever for one of these user agents.
  for (let round = 0; round < 100; round++) for (const ua of hostile) isBot(`${ua}${round}`);
});
