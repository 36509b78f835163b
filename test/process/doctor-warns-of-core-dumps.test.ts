// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { openInstallation } from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

test.skipIf(process.platform !== "linux").each([
  ["0", false],
  ["1024", true],
] as const)("doctor warns about core dumps with a limit of %s: %p", async (limit, warns) => {
  await using world = await openInstallation();
  const script = `ulimit -c ${limit} && exec "$0" "$@"`;
  const child = Bun.spawn(["sh", "-c", script, ...onRuntime(["doctor"])], {
    cwd: world.directory,
    env: world.env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const out = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  expect(out.includes("core dumps are on")).toBe(warns);
});
