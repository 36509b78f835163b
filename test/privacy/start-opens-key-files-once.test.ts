// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { openInstallation } from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

/**
 * Takes a port, so that no other program can listen on it. A service with this port first opens all its files, then
 * notices that the port is taken, and ends.
 */
async function takenPort(): Promise<AsyncDisposable & { readonly port: string }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: String((server.address() as AddressInfo).port),
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

test.skipIf(Bun.which("strace") === null)(
  "a start opens the vault, the keys of personal data and the master key once each",
  async () => {
    await using installation = await openInstallation();
    await using taken = await takenPort();
    const { directory, env } = installation;
    const people = installation.file("people.csv", "username\nada\n");
    expect((await installation.command("recipients", "import", people)).code).toBe(0);
    const trace = join(directory, "trace");
    const strace = Bun.spawn(["strace", "-f", "-qq", "-e", "trace=openat", "-o", trace, ...onRuntime(["serve"])], {
      cwd: directory,
      env: { ...env, PORT: taken.port },
      stdio: ["ignore", "ignore", "ignore"],
    });
    expect(await strace.exited).toBe(1);
    const opened = readFileSync(trace, "utf8");
    const { vault, keys, key } = logFiles(join(directory, "reachlog.sqlite"));
    const times = [vault, keys, key].map((file) => opened.split(`"${file}"`).length - 1);
    expect(times).toEqual([1, 1, 1]);
  },
);
