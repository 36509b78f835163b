// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { readUntil } from "../harness/demo.ts";
import { BEARER, ended, kill, stop, TOKEN, untilListening, type Running } from "../harness/process.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";

const BUILD = join(import.meta.dirname, "../../packaging/build-executable.ts");

const CLICK = {
  event: "link.clicked",
  domain: "go.example",
  short_code: "welcome",
  original_url: "https://example.com/welcome",
};

test("the binary alone serves, restarts after a kill, and its log verifies", async () => {
  using folder = temporaryFolder();
  await using started = new AsyncDisposableStack();
  const run = install(folder, started);
  expect(await ended(run("--version"))).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^reachlog \d/),
    err: "",
  });
  expect(await ended(run("settings"))).toMatchObject({ code: 0, out: expect.stringContaining("\n# PORT=3000\n") });

  const first = await untilListening(run("serve"));
  expect((await first.post("/api/tracking/event", CLICK)).status).toBe(202);
  for (const path of ["/console.css", "/console.js", "/idiomorph.js"]) {
    expect([path, (await first.get(path)).status]).toEqual([path, 200]);
  }
  await kill(first);

  const second = await untilListening(run("serve"));
  expect((await second.post("/api/tracking/event", CLICK)).status).toBe(202);
  const list = await fetch(`${second.url}/social/recipients`, {
    method: "POST",
    headers: CSV,
    body: "username\nsara_sells\n",
  });
  expect(await list.json()).toMatchObject({ added: 1, refused: 0 });
  expect(await stop(second)).toBe(0);
  expect(await ended(run("audit", "verify"))).toMatchObject({ code: 0, out: expect.stringMatching(/^4 events/) });
  expect(await ended(run("backup", "/tmp/copy"))).toMatchObject({ code: 0 });

  // Bun's own reader of `.env` files would take `$70` for an unset variable, and the service would start with an empty
  // value.
  await Bun.write(folder.file(".env"), "DAILY_LIMIT=$70\n");
  expect(await ended(run("doctor"))).toMatchObject({ code: 78, err: expect.stringContaining('DAILY_LIMIT: "$70"') });
  rmSync(folder.file(".env"));

  const demo = run("demo", "--port", "0", "--sandbox-port", "0");
  const printed = await readUntil(demo.stdout, /Stop with Ctrl-C\./);
  const sandbox = /^sandbox +(\S+)/m.exec(printed)?.[1] ?? "";
  for (const path of ["/sandbox.css", "/sandbox.js", "/idiomorph.js"]) {
    expect([path, (await fetch(sandbox + path)).status]).toEqual([path, 200]);
  }
  demo.kill("SIGTERM");
  expect(await demo.exited).toBe(0);
});

/**
 * All environment variables of the binary. It gets no others, so nothing of the machine's own configuration has an
 * effect.
 */
const ENV = { PORT: "0", API_TOKENS: `tester:${TOKEN}` };

const CSV = { ...BEARER, "content-type": "text/csv" };

type Run = (...args: readonly string[]) => Running["process"];

const UNSHARE = "/usr/bin/unshare";
const CHROOT = "/usr/sbin/chroot";

/**
 * Builds the binary into an empty folder and returns a function that runs it. Where the machine allows it, the program
 * then sees no file outside of that folder.
 */
function install(folder: TemporaryFolder, started: AsyncDisposableStack): Run {
  const binary = folder.file("reachlog");
  const built = Bun.spawnSync([process.execPath, BUILD, "--out", binary]);
  if (built.exitCode !== 0) throw new Error(built.stderr.toString());

  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
  const options = { cwd: folder.path, env: ENV, stdio };
  if (!canIsolate()) return (...args) => started.use(Bun.spawn([binary, ...args], options));

  for (const name of ["proc", "dev", "tmp"]) mkdirSync(folder.file(name));
  for (const [library] of Bun.spawnSync(["ldd", binary])
    .stdout.toString()
    .matchAll(/\/lib\S+/g)) {
    mkdirSync(folder.file(dirname(library)), { recursive: true });
    copyFileSync(library, folder.file(library));
  }
  // Bun reads /proc. Each command here replaces the process of the one before, so that a signal reaches the program
  // itself.
  const line = 'mount --rbind /proc proc && mount --rbind /dev dev && exec env -i "$@"';
  const environment = Object.entries(ENV).map(([name, value]) => `${name}=${value}`);
  const isolated = [UNSHARE, "--mount", "sh", "-c", line, "sh", ...environment, CHROOT, ".", "/reachlog"];
  const env = { PATH: process.env["PATH"] ?? "" };
  return (...args) => started.use(Bun.spawn([...isolated, ...args], { ...options, env }));
}

/**
 * True if the binary can run in an isolated file system, with `unshare` and `chroot`. Only the root user may do that,
 * and some containers forbid it.
 */
function canIsolate(): boolean {
  return process.getuid?.() === 0 && Bun.spawnSync([UNSHARE, "--mount", CHROOT, "/", "/bin/true"]).exitCode === 0;
}
