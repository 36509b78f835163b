import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

/** Two processes at a time start several times over. */
const TIMEOUT_MS = 300_000;

/** Where the demo keeps its files, and what it printed once it was ready. */
async function startDemo(directory: string) {
  const child = Bun.spawn([process.execPath, MAIN, "demo", "--port", "0", "--sandbox-port", "0", "--keep", directory], {
    cwd: directory,
    env: { PATH: process.env["PATH"] ?? "" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let told = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    told += chunk;
    if (told.includes("Stop with Ctrl-C.")) break;
  }
  return {
    told,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** Runs a line in a shell of its own, as another terminal would. */
async function shell(directory: string, line: string): Promise<{ code: number; out: string; err: string }> {
  const child = Bun.spawn(["sh", "-c", line.replaceAll("reachlog ", `'${process.execPath}' '${MAIN}' `)], {
    cwd: directory,
    env: { PATH: process.env["PATH"] ?? "" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, out, err };
}

test(
  "beside the demo another terminal has its settings, by the line that it prints",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "demo of "));
    try {
      await using demo = await startDemo(directory);
      const settings = join(directory, "demo.env");
      const source = /^ *(set -a; .*; set \+a)$/m.exec(demo.told)?.[1] ?? "";
      expect(source).toContain(settings);
      expect(statSync(settings).mode & 0o777).toBe(0o600);
      const beside = (command: string) => shell(directory, `${source}; reachlog ${command}`);
      const tokens = await beside("token list");
      expect([tokens.code, tokens.out]).toEqual([0, expect.stringMatching(/^demo +[0-9a-f]{12} +API_TOKENS$/m)]);
      const deliveries = await beside("deliveries list");
      expect([deliveries.code, deliveries.out]).toEqual([0, expect.not.stringContaining("not configured")]);
      const preview = await beside("outreach preview sara_sells");
      expect([preview.code, preview.out]).toEqual([0, expect.stringContaining("Sara")]);
      const doctor = await beside("doctor");
      expect(doctor.out).toStartWith("ok    configuration: complete\n");
      const named = readFileSync(settings, "utf8");
      expect(named).not.toContain("PORT='0'");
      const byFile = await shell(directory, `'${process.execPath}' --env-file='${settings}' '${MAIN}' token list`);
      expect(byFile.out).toBe(tokens.out);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  },
  TIMEOUT_MS,
);
