// On the process harness.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quoted, startDemo } from "../harness/demo.ts";
import { onRuntime } from "../harness/runtime.ts";

/** Two processes at a time start several times over. */
const TIMEOUT_MS = 300_000;

test(
  "beside the demo another terminal has its settings, by the line that it prints",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "demo of "));
    try {
      using others = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
      const taken = String(others.port);
      await using demo = await startDemo(directory, ["--keep", directory, "--port", taken]);
      // Where a port is in use, a free one is taken.
      expect(new URL(demo.url).port).not.toBe(taken);
      const settings = join(directory, "demo.env");
      const source = /^ *(set -a; .*; set \+a)$/m.exec(demo.printed)?.[1] ?? "";
      expect(source).toContain(settings);
      expect(statSync(settings).mode & 0o777).toBe(0o600);
      const beside = (command: string) => demo.shell(`${source}; reachlog ${command}`);
      const tokens = await beside("token list");
      expect([tokens.code, tokens.out]).toEqual([
        0,
        expect.stringMatching(/^demo +[0-9a-f]{12} +all +never +\S+ +API_TOKENS$/m),
      ]);
      const deliveries = await beside("deliveries list");
      expect([deliveries.code, deliveries.out]).toEqual([0, expect.not.stringContaining("not configured")]);
      const preview = await beside("outreach preview sara_sells");
      expect([preview.code, preview.out]).toEqual([0, expect.stringContaining("Sara")]);
      // Two weeks of history: replies, clicks by recipients that allow it, and one opt-out.
      const { rows } = JSON.parse((await beside("results --json")).out) as { rows: Record<string, number>[] };
      const sum = (name: string) => rows.reduce((total, row) => total + (row[name] ?? 0), 0);
      expect([sum("sent"), sum("replied"), sum("opted_out")]).toEqual([12, 4, 1]);
      expect((await beside("audit show alma_demo")).out).toContain("the recipient's own link was requested");
      const doctor = await beside("doctor");
      expect(doctor.out).toStartWith("ok      configuration: complete\n");
      const named = readFileSync(settings, "utf8");
      expect(named).not.toContain("PORT='0'");
      const withFile = onRuntime(["token", "list"], { flags: [`--env-file=${settings}`] });
      const byFile = await demo.shell(withFile.map(quoted).join(" "));
      expect(byFile.out).toBe(tokens.out);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  },
  TIMEOUT_MS,
);
