// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEventLog, type NewEvent } from "../../src/log/event-log.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { sqliteStore } from "../../src/log/store-backends.ts";
import { secret } from "../../src/platform/secret.ts";
import type { EncryptedLog } from "../../src/privacy/encrypted-log.ts";
import { filePlace } from "../../src/privacy/locate-log.ts";
import { openLogAt, type OpenedLog } from "../../src/privacy/open-log.ts";
import { clickOf, PERSON } from "../harness/in-process/make-recipient-and-click-events.ts";

/** Click without personal data, so without a ciphertext. */
const CLICK = clickOf();
const READ: NewEvent = { type: "SourceRead", data: { run_id: "r", source: "search", scope: "tea", people: 0 } };

test.each([CLICK, READ])("lost keys are detected despite many later events without keys: $type", async (newEvent) => {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-lost-"));
  try {
    const open = (): Promise<EncryptedLog> =>
      openLogAt(filePlace(logFiles(join(directory, "log.sqlite")), secret("01".repeat(32))));
    {
      await using log = await open();
      const eventLog = createEventLog(log, () => Bun.randomUUIDv7());
      await eventLog.append("a", [PERSON], {});
      for (let batch = 0; batch < 3; batch++)
        await eventLog.append(
          "a",
          Array.from({ length: 500 }, () => newEvent),
          {},
        );
    }
    rmSync(join(directory, "log.keys.sqlite"));
    const opened = await open().catch((fault: unknown) => fault);
    expect(opened).toMatchObject({
      kind: "configuration",
      message: expect.stringContaining("serve --accept-lost-keys"),
    });
    expect(readdirSync(directory)).not.toContain("log.keys.sqlite");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("keys and vault that went on with a later epoch refuse an older copy of the log", async () => {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-older-"));
  try {
    const [file, copy] = [join(directory, "log.sqlite"), join(directory, "copy.sqlite")];
    const open = (): Promise<OpenedLog> => openLogAt(filePlace(logFiles(file), secret("01".repeat(32))));
    const append = async (log: OpenedLog) => {
      await createEventLog(log, () => Bun.randomUUIDv7()).append("a", [PERSON], {});
      await log.goOn();
    };
    {
      await using log = await open();
      await append(log);
    }
    copyFileSync(file, copy);
    await sqliteStore(file).beginEpoch("operator", "tests");
    {
      await using log = await open();
      await append(log);
    }
    copyFileSync(copy, file);
    const opened = await open().catch((fault: unknown) => fault);
    expect(opened).toMatchObject({
      kind: "configuration",
      message: expect.stringMatching(/belongs to a later epoch of the log .*, which is an older copy/),
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
