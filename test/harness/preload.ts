/** Loaded before every run of tests: what holds for all of them, whatever harness they are on. */
import { afterAll, setDefaultTimeout } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Only what hangs is cut: a busy machine may take as long as it likes, and what goes on after a cut disturbs others. */
setDefaultTimeout(1_200_000);

/** Unless TMPDIR says where: a disk on which fsync costs nothing, so that no test waits for a busy one. */
const MEMORY_DISK = "/dev/shm";
/** Several times what a whole run leaves there until it ends. */
const FREE_BYTES_MIN = 2 ** 31;

function hasRoom(): boolean {
  if (!existsSync(MEMORY_DISK)) return false;
  const { bavail, bsize } = statfsSync(MEMORY_DISK);
  return bavail * bsize >= FREE_BYTES_MIN;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (fault) {
    return (fault as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Temporary files of this process, which go with it; those of a run that was killed go with the next. */
const root = process.env["TMPDIR"] ?? (hasRoom() ? MEMORY_DISK : tmpdir());
for (const name of readdirSync(root)) {
  const pid = /^reachlog-tests-(\d+)$/.exec(name)?.[1];
  if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(root, name), { recursive: true, force: true });
}
const folder = join(root, `reachlog-tests-${process.pid}`);
mkdirSync(folder, { recursive: true, mode: 0o700 });
process.env["TMPDIR"] = folder;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A call to anything but loopback is a defect of the test, so it throws. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

const realFetch = globalThis.fetch;

function guardedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input);
  // Names that cannot resolve stay allowed: tests of DNS faults need a lookup that fails.
  if (!LOOPBACK.test(url.hostname) && !url.hostname.endsWith(".invalid")) {
    throw new Error(`a test tried to reach ${url.host}: only loopback is allowed`);
  }
  return realFetch(input, init);
}

globalThis.fetch = Object.assign(guardedFetch, { preconnect: realFetch.preconnect });
