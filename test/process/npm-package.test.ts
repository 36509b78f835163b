// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { ended, stop, untilListening } from "../harness/process.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const PACK = join(import.meta.dirname, "../../packaging/pack-reachlog.ts");

const CLICK = {
  event: "link.clicked",
  domain: "go.example",
  short_code: "welcome",
  original_url: "https://example.com/welcome",
};

test("the npm package is started by node, serves, stops and passes on exit codes", async () => {
  using folder = temporaryFolder();
  succeed(process.execPath, PACK, "--out", folder.path);
  const archive = [...new Bun.Glob("*.tgz").scanSync(folder.path)][0] ?? "";
  const packed = succeed("tar", "-tzf", folder.file(archive));
  expect(packed).not.toMatch(/test|\.ts$|\.sqlite/m);
  expect(packed).toContain("package/reachlog.1\n");

  // Creates the folders that npm creates. The package of Bun contains the current Bun instead of one that npm would
  // download.
  const installed = folder.file("node_modules/reachlog");
  mkdirSync(installed, { recursive: true });
  succeed("tar", "-xzf", folder.file(archive), "--strip-components=1", "-C", installed);
  mkdirSync(folder.file("node_modules/bun/bin"), { recursive: true });
  await Bun.write(folder.file("node_modules/bun/package.json"), "{}");
  symlinkSync(process.execPath, folder.file("node_modules/bun/bin/bun.exe"));

  const place = folder.file("empty");
  mkdirSync(place);
  await using started = new AsyncDisposableStack();
  const options = {
    cwd: place,
    env: { PATH: process.env["PATH"] ?? "", PORT: "0" },
    stdout: "pipe",
    stderr: "pipe",
  } as const;
  const run = (...args: readonly string[]) =>
    started.use(Bun.spawn(["node", join(installed, "reachlog.js"), ...args], { ...options, stdin: "ignore" }));
  expect(await ended(run("--version"))).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^reachlog \d/),
    err: "",
  });
  expect(await ended(run("settings"))).toMatchObject({ code: 0, out: expect.stringContaining("\n# PORT=3000\n") });
  expect(await ended(run("nonsense"))).toMatchObject({ code: 2, out: "" });

  const service = await untilListening(run("serve"));
  expect((await service.post("/api/tracking/event", CLICK)).status).toBe(202);
  expect((await service.get("/console.css")).status).toBe(200);
  expect(await stop(service)).toBe(0);
  expect(await ended(run("audit", "verify"))).toMatchObject({ code: 0, out: expect.stringMatching(/^1 events/) });

  // Bun's own reader of `.env` files would take `$70` for an unset variable, and the service would start with an empty
  // value.
  await Bun.write(join(place, ".env"), "DAILY_LIMIT=$70\n");
  expect(await ended(run("doctor"))).toMatchObject({ code: 78, err: expect.stringContaining('DAILY_LIMIT: "$70"') });
});

/** Runs a command that must succeed. Returns its stdout. */
function succeed(...command: readonly string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command]);
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
}
