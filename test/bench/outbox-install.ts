import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "eventstore-lite/bench/child";

/** Pinned: a figure of "the newest" would say nothing tomorrow. Of better-sqlite3 the last line that runs on Node 20. */
const PEER = { fastify: "5.12.8", "better-sqlite3": "12.11.1" };

/**
 * Installs the peer into a folder of its own and puts its program there as JavaScript, for Node. Answers the program.
 * Throws where Node, npm or the native module is not to be had (the latter may be compiled, which takes a minute).
 */
export async function installOutbox(home: string): Promise<string> {
  if (Bun.which("node") === null || Bun.which("npm") === null) throw new Error("node and npm are not installed");
  mkdirSync(home);
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true, type: "module", dependencies: PEER }));
  await outputOf(["npm", "install", "--no-audit", "--no-fund"], { cwd: home });
  const entrypoints = [join(import.meta.dirname, "outbox.ts")];
  await Bun.build({ entrypoints, target: "node", outdir: home });
  return join(home, "outbox.js");
}
