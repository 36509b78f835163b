// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { cursorOf, sources } from "../../projections/recipient-source-cursors.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given } from "../harness/in-process/number-and-fold-events.ts";

const read = (more: { from?: string; next?: string; newest?: string; scope?: string }): NewEvent => {
  const { scope = "42", ...rest } = more;
  return { type: "SourceRead", data: { run_id: "r1", source: "followers", scope, people: 2, ...rest } };
};

const after = (...newEvents: NewEvent[]) => cursorOf(given(sources, newEvents), "followers", "42");

test("a source that was never read begins at the top", () => {
  expect(after()).toEqual({ next: null, newest: [], since: [] });
});

test("a pass continues at its next page, and the next pass stops at its top", () => {
  const first = read({ newest: "9", next: "p2" });
  expect(after(first)).toEqual({ next: "p2", newest: ["9"], since: [] });
  const second = read({ from: "p2", newest: "7", next: "p3" });
  expect(after(first, second)).toEqual({ next: "p3", newest: ["9", "7"], since: [] });
  const last = read({ from: "p3" });
  expect(after(first, second, last)).toEqual({ next: null, newest: [], since: ["9", "7"] });
});

test("a pass without a new recipient keeps the newest entries of the previous pass", () => {
  expect(after(read({ newest: "9" }), read({}))).toEqual({ next: null, newest: [], since: ["9"] });
});

test("a restarted pass replaces the newest entries", () => {
  const begun = read({ newest: "9", next: "p2" });
  expect(after(begun, read({ newest: "11", next: "q2" }), read({ from: "q2" })).since).toEqual(["11"]);
});

test("at most 20 newest entries of passes and pages are kept", () => {
  const pages = Array.from({ length: 30 }, (_, page) => read({ newest: String(page) }));
  expect(after(...pages).since).toEqual(Array.from({ length: 20 }, (_, page) => String(29 - page)));
  const long = Array.from({ length: 30 }, (_, page) =>
    read({ newest: String(100 + page), next: "n", ...(page === 0 ? {} : { from: "n" }) }),
  );
  expect(after(...pages, ...long, read({ from: "n" })).since).toEqual(
    Array.from({ length: 20 }, (_, page) => String(100 + page)),
  );
});

test("each query, list or account has a separate cursor", () => {
  expect(after(read({ newest: "9", next: "p2", scope: "43" }))).toEqual({ next: null, newest: [], since: [] });
});
