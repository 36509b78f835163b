// These tests call the code directly.
import { expect, test } from "bun:test";
import { table } from "../../../src/commands/shared/terminal-answers-and-exit-codes.ts";

test("a table aligns its columns in every script", () => {
  const rows = [
    ["ann", 1],
    ["漢字", 2],
    ["👩‍👩‍👧", 3],
    ["e\u0301ve", 4],
  ] as const;
  expect(table(["name", "n"], rows)).toBe("name  n\nann   1\n漢字  2\n👩‍👩‍👧    3\ne\u0301ve   4\n");
});

test("a table replaces control characters and bidirectional marks", () => {
  expect(table(["name"], [["a\u001b[2Jb\u202e"]])).toBe("name\na\ufffd[2Jb\ufffd\n");
});
