// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { openInstallation, until } from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

const BOLD = "\u001b[1m";
const RED = "\u001b[31m";

test("output to a pipe has no colours", async () => {
  await using world = await openInstallation();
  const { out } = await world.execute("--help");
  const { err } = await world.execute("audit", "verify");
  expect([out, err].join("")).not.toContain("\u001b");
});

test("FORCE_COLOR styles headings and faults, and control characters in arguments are replaced", async () => {
  await using world = await openInstallation();
  world.env["FORCE_COLOR"] = "1";
  expect((await world.execute("--help")).out).toStartWith(`${BOLD}Usage: `);
  const { err } = await world.execute("audit", "show", "\u001b[2Jada");
  expect(err).toStartWith(RED);
  expect(err).not.toContain("\u001b[2J");
  expect((await world.execute("doctor")).out).toContain("\u001b[32mok     \u001b[39m configuration");
});

test.each([
  [{}, true],
  [{ NO_COLOR: "1" }, false],
])("on a terminal with %j, headings are styled: %p", async (more, styled) => {
  await using world = await openInstallation();
  let seen = "";
  const child = Bun.spawn(onRuntime(["--help"]), {
    cwd: world.directory,
    env: { ...world.env, TERM: "xterm", ...more },
    terminal: { data: (_terminal, bytes) => void (seen += Buffer.from(bytes).toString()) },
  });
  await until(
    async () => seen,
    (text) => text.includes("COMMAND --help says more."),
  );
  expect(await child.exited).toBe(0);
  expect(seen.includes(`${BOLD}Usage: `)).toBe(styled);
});
