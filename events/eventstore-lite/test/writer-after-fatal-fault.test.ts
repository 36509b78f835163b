import { expect, test } from "bun:test";
import { openWriter } from "../src/sqlite/connections.ts";
import { createWriter } from "../src/sqlite/writer/perform-write-requests.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

test("the writer attempts nothing more after a fatal fault", () => {
  const { db } = openWriter(newLogPath(), Number.MAX_SAFE_INTEGER);
  const writer = createWriter(db, () => undefined);
  db.close();
  const acquire = { kind: "acquireLease", name: "l", holder: "h", ttlMs: 1, steal: false, nowMs: 0 } as const;
  expect(writer.answer(acquire)).toMatchObject({ kind: "fault", fault: "fatal" });
  expect(writer.answer(acquire)).toMatchObject({ kind: "fault", fault: "stopped" });
});
