/**
 * Program for tests: the service on a machine whose clock is MOVED_MS ahead. At each SIGUSR2 the wall clock alone jumps
 * by JUMP_MS; without JUMP_MS, all clocks jump by ten minutes.
 */
import { loadConfig } from "../../../src/config/config.ts";
import { createLogger } from "../../../src/platform/logger.ts";
import { startService } from "../../../src/service/service.ts";

const STEP_MS = 10 * 60_000;
const { MOVED_MS = 0, JUMP_MS } = process.env;

const { now } = Date;
let movedMs = Number(MOVED_MS);
Date.now = () => now() + movedMs;
const elapsed = performance.now.bind(performance);
let passedMs = 0;
performance.now = () => elapsed() + passedMs;
process.on("SIGUSR2", () => {
  movedMs += Number(JUMP_MS ?? STEP_MS);
  if (JUMP_MS === undefined) passedMs += STEP_MS;
});

const config = loadConfig(process.env, () => "");
const logger = createLogger("info", (line) => process.stderr.write(line), Date.now);
const service = await startService(config, logger);
process.once("SIGTERM", () => {
  void service[Symbol.asyncDispose]().then(() => process.exit(0));
});
