#!/usr/bin/env node
// Starts the service on the Bun installed with it, and passes on its input, output, signals and exit code.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";

// Tells the service the path by which it was started.
const argv0 = process.argv[1];
const main = join(import.meta.dirname, "main.js");
const service = spawn(bun(), ["--no-install", "--no-env-file", main, ...process.argv.slice(2)], {
  argv0,
  stdio: "inherit",
});

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => service.kill(signal));
service.on("exit", (code, signal) => {
  process.exitCode = code ?? 128 + constants.signals[signal];
});

/**
 * Path of the Bun build for this machine. The package `bun` has it in its usual place only if npm runs install scripts.
 */
function bun() {
  const home = createRequire(import.meta.url).resolve("bun/package.json");
  const machine = `${process.platform}-${process.arch === "arm64" ? "aarch64" : process.arch}`;
  for (const folder of createRequire(home).resolve.paths("@oven/bun")) {
    for (const build of [machine, `${machine}-musl`]) {
      const file = join(folder, "@oven", `bun-${build}`, "bin", process.platform === "win32" ? "bun.exe" : "bun");
      if (existsSync(file)) return file;
    }
  }
  return join(dirname(home), "bin", "bun.exe");
}
