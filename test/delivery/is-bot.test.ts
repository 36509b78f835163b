// On no harness.
import { describe, expect, test } from "bun:test";
import crawlers from "crawler-user-agents";
import { isBot, OF_PEOPLE } from "../../src/delivery/is-bot.ts";
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

test("all that crawler-user-agents knows are known, but for what people match", () => {
  const listed = crawlers.filter(({ pattern }) => !OF_PEOPLE.has(pattern)).flatMap(({ instances }) => instances);
  expect(listed.filter((ua) => !isBot(ua))).toEqual([]);
});

test("what people match is still in that list: else it need not be left out any more", () => {
  const patterns = new Set(crawlers.map(({ pattern }) => pattern));
  expect([...OF_PEOPLE].filter((pattern) => !patterns.has(pattern))).toEqual([]);
});

test("a hostile user agent of the longest length comes to an end", () => {
  const pieces = ["a", "Mozilla/5.0 (", "a.", "- ", "/1.", "\u00e9", "Spider", "Current"];
  const hostile = pieces.map((piece) => piece.repeat(1024).slice(0, 1024));
  // With an expression that backtracks without bound, one of them would take longer than a lifetime.
  for (let round = 0; round < 100; round++) for (const ua of hostile) isBot(`${ua}${round}`);
});
