// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quoted, startDemo } from "../harness/demo.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

interface Row {
  readonly sent: number;
  readonly replied: number;
  readonly opted_out: number;
  readonly clicks?: { readonly total: number } | null;
}

const DAY_MS = 24 * 3_600_000;

test("another terminal gets the demo's settings by the line that the demo prints", async () => {
  const directory = mkdtempSync(join(tmpdir(), "demo of "));
  try {
    const listen = () => Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("another program") });
    using one = listen();
    using other = listen();
    const taken = ["--port", String(one.port), "--sandbox-port", String(other.port)];
    await using demo = await startDemo(directory, ["--keep", directory, ...taken]);
    // If a port is in use, the demo takes a free one and reports it.
    const [, sandboxUrl = ""] = /^sandbox +(\S+)/m.exec(demo.printed) ?? [];
    const said = [
      `port ${other.port} is in use: the sandbox takes ${new URL(sandboxUrl).port}`,
      `port ${one.port} is in use: the service takes ${new URL(demo.url).port}`,
    ];
    expect(demo.said().split("\n")).toEqual(expect.arrayContaining(said));
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
    const deliveries = await beside("deliveries channels");
    expect([deliveries.code, deliveries.out]).toEqual([0, expect.not.stringContaining("not configured")]);
    const preview = await beside("outreach preview sara_sells");
    expect([preview.code, preview.out]).toEqual([0, expect.stringContaining("Sara")]);
    // The demo has a history of two weeks: replies, clicks of recipients who allow tracking, and one opt-out.
    const { rows } = JSON.parse((await beside("results --by link --json")).out) as { rows: readonly Row[] };
    const sum = (figure: (row: Row) => number) => rows.reduce((total, row) => total + figure(row), 0);
    const figures = [sum(({ sent }) => sent), sum(({ replied }) => replied), sum(({ opted_out }) => opted_out)];
    expect([...figures, sum(({ clicks }) => clicks?.total ?? 0)]).toEqual([12, 4, 1, 9]);
    const runs = (await beside("audit export --type RunStarted")).out.trim().split("\n");
    const days = runs.map((line) => (Date.now() - Date.parse((JSON.parse(line) as { time: string }).time)) / DAY_MS);
    expect(days.map((day) => Math.round(day))).toEqual([14, 10, 6, 2, 1]);
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
});
