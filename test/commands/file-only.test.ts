// On no harness.
import { expect, test } from "bun:test";
import { runCommandLine } from "../../src/commands/command-line.ts";

const env = { DATABASE_URL: "postgres://ann:hunter2@localhost:5433/reach", REACHLOG_KEY: "A".repeat(43) };

test.each(["audit import log.jsonl", "backup copy", "restore copy"])(
  "%s is for a log that is a file, and says what to do instead",
  async (line) => {
    let [out, err] = ["", ""];
    const code = await runCommandLine(line.split(" "), {
      env,
      out: (text) => void (out += text),
      err: (text) => void (err += text),
      interactive: false,
      signal: new AbortController().signal,
    });
    expect([code, out]).toEqual([78, ""]);
    expect(err).toContain("the log is on PostgreSQL, postgres://localhost:5433/reach: ");
    expect(err).not.toContain("hunter2");
  },
);
