import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { fileURLToPath } from "node:url";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

/**
 * Maximum size of a file that the tested process may write, for `ulimit -f`, in blocks of 512 or 1,024 bytes, depending
 * on the shell.
 */
const FILE_BLOCKS_MAX = 4_096;

test.skipIf(process.platform === "win32")(
  "an I/O error leaves its append in doubt and ends later appends, not reads",
  async () => {
    const file = newLogPath();
    const program = fileURLToPath(new URL("./programs/append-past-file-limit.ts", import.meta.url));
    const command = `ulimit -f ${FILE_BLOCKS_MAX}; exec "$0" "$@"`;
    const child = Bun.spawn(["sh", "-c", command, process.execPath, program, file], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const outcome = JSON.parse(await new Response(child.stdout).text());
    expect(outcome).toMatchObject({ fault: "AppendInDoubt", isFailed: true, later: "StoreClosed" });
    expect(outcome.acknowledged).toBeGreaterThan(10);
    expect(outcome.position).toBe(outcome.acknowledged);
    expect(await child.exited).toBe(0);

    await using store = await openSqliteStore({ file });
    const { position } = await store.head();
    expect(position).toBeGreaterThanOrEqual(outcome.acknowledged);
    expect(position).toBeLessThanOrEqual(outcome.acknowledged + 1);
    expect(await store.verify()).toMatchObject({ ok: true });
  },
);
