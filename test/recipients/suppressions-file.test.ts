// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { parseSuppressions, type SuppressionRow } from "../../src/recipients/parse-imported-lists.ts";
import { nameHashKey } from "../../src/recipients/suppress.ts";
import { createSuppressionHashes } from "../../src/privacy/suppression-hashes.ts";
import { REASON_CHARS_MAX } from "../../src/recipients/file/suppression-row.ts";
import type { RecipientsFormat } from "../../src/recipients/file/format-and-limits.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");
const hashesOf = createSuppressionHashes(new Uint8Array(32).fill(1));
const [hash = ""] = hashesOf({ id: "1001" });
const KEY = nameHashKey(hashesOf);
const OTHER_KEY = nameHashKey(createSuppressionHashes(new Uint8Array(32).fill(2)));

const read = (text: string, format: RecipientsFormat = "csv") => parseSuppressions(text, format, { now: NOW }, KEY);
const suppressionsIn = ({ rows }: { readonly rows: readonly SuppressionRow[] }) =>
  rows.map(({ line, suppression }) => [line, suppression]);

test("a row names its recipient by id, handle or hash, or by several of them", () => {
  const file = read(`id,handle,hash\n1001,@ann,${KEY}.${hash}\n,https://x.com/Bea,\n,,${KEY}.${hash}`);
  expect(file.refused).toEqual([]);
  expect(suppressionsIn(file)).toEqual([
    [2, { id: "1001", username: "ann", hash, reason: "list" }],
    [3, { username: "Bea", reason: "list" }],
    [4, { hash, reason: "list" }],
  ]);
});

test.each([
  ["", { reason: "list" }],
  ["list", { reason: "list" }],
  ["by_hand", { reason: "by_hand" }],
  ["Opt-Out", { reason: "opt_out" }],
  ["opt out", { reason: "opt_out" }],
  ["asked by\tphone", { reason: "list", reason_text: "asked by phone" }],
  ["'=cmd", { reason: "list", reason_text: "'=cmd" }],
  ["'tis over", { reason: "list", reason_text: "'tis over" }],
  ["x".repeat(REASON_CHARS_MAX), { reason: "list", reason_text: "x".repeat(REASON_CHARS_MAX) }],
] as const)("the reason %j is read as %j", (reason, expected) => {
  expect(suppressionsIn(read(JSON.stringify([{ id: 1001, reason }]), "json"))).toEqual([
    [1, { id: "1001", ...expected }],
  ]);
});

test("a reason is read without the apostrophe that guards against formulas", () => {
  const { rows, notes } = read("id,reason\n1001,'=cmd\n1002,'tis over\n");
  expect(rows.map(({ suppression }) => suppression.reason_text)).toEqual(["=cmd", "'tis over"]);
  expect(notes).toEqual({
    count: 1,
    first: [{ note: "guard_removed", column: "reason", value: "'=cmd", line: 2, count: 1 }],
  });
});

test.each([
  ["2026-03-02", "2026-03-02"],
  ["2026-03-02T10:15:00+01:00", "2026-03-02T09:15:00.000Z"],
])("the date %s is read as %s", (given, expected) => {
  expect(suppressionsIn(read(`id,suppressed at\n1001,${given}`))).toEqual([
    [2, { id: "1001", reason: "list", suppressed_at: expected }],
  ]);
});

describe("a row", () => {
  test.each([
    ["username", "ann builds", "username is neither a handle"],
    ["id", "1.5E+18", "a spreadsheet has rounded this id"],
    ["id,reason", ",opt_out", "neither a username, an id nor a hash"],
    ["hash", hash, "hash is not in the format of reachlog suppressions export"],
    ["hash", `${KEY}.${hash}x`, "hash is not in the format of reachlog suppressions export"],
    ["hash", `${OTHER_KEY}.${hash}`, "hash was made with the key of another log, and matches no recipient here"],
    ["id,reason", `1001,${"x".repeat(REASON_CHARS_MAX + 1)}`, `reason has more than ${REASON_CHARS_MAX} characters`],
    ["id,suppressed_at", "1001,2026-11-22", "suppressed_at is in the future"],
    ["id,suppressed_at", "1001,1970-01-01", "suppressed_at is before 1995-01-01"],
    ["id,suppressed_at", "1001,03/02/2026", "suppressed_at 03/02/2026 is ambiguous, 2026-02-03 or 2026-03-02"],
  ])("is refused for %s: %s", (header, row, reason) => {
    expect(read(`${header}\n${row}\n`)).toMatchObject({
      rows: [],
      refused: [{ line: 2, reason: expect.stringContaining(reason) }],
    });
  });

  test("does not affect other rows if it is refused, also for the same recipient", () => {
    const { rows, refused } = read("username,id\nann,1001\nc d,\nANN,\n,1001");
    expect([rows.map(({ line }) => line), refused.map(({ line }) => line)]).toEqual([[2, 4, 5], [3]]);
  });
});

test.each([
  ["csv", "name\nAnn", "suppressions have no column name: they have id, username, hash, reason and suppressed_at"],
  ["csv", "reason\nopt_out", "no column is named username, handle, id or hash (found: reason)"],
  ["json", '[{"id":"1"},\n{"id":"2","reson":"opt_out"}]', "line 2: suppressions have no column reson: they have id,"],
  ["jsonl", '{"id":"1"}\n{"id":"2","reson":"opt_out"}', "line 2: suppressions have no column reson: they have id,"],
  ["json", '{"recipients":[]}', 'neither an array of objects nor {"suppressions": [...]}'],
] as const)("a %s with the wrong columns or structure is refused as a whole: %s", (format, text, why) => {
  expect(() => read(text, format)).toThrow(why);
});

test("the name of a hash key depends on the key only", () => {
  expect(KEY).toMatch(/^[0-9a-f]{8}$/);
  expect(nameHashKey(createSuppressionHashes(new Uint8Array(32).fill(1)))).toBe(KEY);
  expect(OTHER_KEY).not.toBe(KEY);
});
