// These tests call the code directly.
import { expect, test } from "bun:test";
import { join } from "node:path";

const MODULE = join(import.meta.dirname, "../../src/platform/log-uncaught-errors-and-continue.ts");

/**
 * Program with an error thrown in a timer and a rejected promise. Each error contains a secret that is not in its
 * message.
 */
const PROGRAM = `
  const { handleUncaughtErrors } = await import(${JSON.stringify(MODULE)});
  handleUncaughtErrors((line) => process.stderr.write(line));
  const fault = (message) => Object.assign(new Error(message, { cause: "s3cret" }), { request: { token: "s3cret" } });
  setTimeout(() => { throw fault("thrown") }, 0);
  void Promise.reject(fault("rejected"));
  setTimeout(() => console.log("goes on"), 50);
`;

test("an uncaught error is logged in one line without its properties, and the process continues", async () => {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "-e", PROGRAM]);
  expect([exitCode, stdout.toString()]).toEqual([0, "goes on\n"]);
  const text = stderr.toString();
  const lines = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { level: string; error: string });
  expect(lines.map(({ level, error }) => `${level} ${error}`).toSorted()).toEqual([
    "error Error: rejected",
    "error Error: thrown",
  ]);
  expect(text).not.toContain("s3cret");
});
