// These tests call the code directly.
import { expect, test } from "bun:test";
import { createLogger } from "../../src/platform/logger.ts";
import { badLines, HOSTILE, STEERING } from "../process/hostile/texts.ts";

test.each(Object.entries(HOSTILE))("a value that %s is one JSON record on one line", (_aim, text) => {
  const lines: string[] = [];
  const logger = createLogger(
    "debug",
    (line) => lines.push(line),
    () => 0,
  );
  logger.warn(text, { field: text, [text]: text });
  expect(lines).toHaveLength(1);
  const [line = ""] = lines;
  expect(line.indexOf("\n")).toBe(line.length - 1);
  expect([badLines(line), STEERING.test(line)]).toEqual([[], false]);
  expect(JSON.parse(line)).toEqual({
    time: "1970-01-01T00:00:00.000Z",
    level: "warn",
    message: text,
    field: text,
    [text]: text,
  });
});

test("a failed write of a line does not throw", () => {
  const log = createLogger(
    "debug",
    () => {
      throw new Error("ENOSPC");
    },
    () => 0,
  );
  for (const level of ["debug", "info", "warn", "error"] as const) log[level]("not written");
});
