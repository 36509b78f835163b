import { expect, test } from "bun:test";
import { cursorOf, sources } from "../../projections/sources.ts";
import type { Fact } from "../../src/journal.ts";
import { given } from "./recorded.ts";

const read = (more: { next?: string; newest?: string; scope?: string }): Fact => {
  const { scope = "42", ...rest } = more;
  return { type: "SourceRead", data: { run_id: "r1", source: "followers", scope, people: 2, ...rest } };
};

const after = (...facts: Fact[]) => cursorOf(given(sources, facts), "followers", "42");

test("a source that was never read begins at the top", () => {
  expect(after()).toEqual({ next: null, newest: null, since: null });
});

test("a pass goes on at the next page, and once it has ended the next one reads down to its newest entry", () => {
  const first = read({ newest: "9", next: "p2" });
  expect(after(first)).toEqual({ next: "p2", newest: "9", since: null });
  const second = read({ next: "p3" });
  expect(after(first, second)).toEqual({ next: "p3", newest: "9", since: null });
  expect(after(first, second, read({}))).toEqual({ next: null, newest: null, since: "9" });
});

test("a pass without anybody new keeps the newest entry of the one before", () => {
  expect(after(read({ newest: "9" }), read({}))).toEqual({ next: null, newest: null, since: "9" });
});

test("a pass that had to begin anew has another newest entry", () => {
  expect(after(read({ newest: "9", next: "p2" }), read({ newest: "11", next: "q2" }), read({}))).toMatchObject({
    since: "11",
  });
});

test("another query, list or account has a cursor of its own", () => {
  expect(after(read({ newest: "9", next: "p2", scope: "43" }))).toEqual({ next: null, newest: null, since: null });
});
