/** The service on a machine whose clock is moved on by ten minutes at each SIGUSR2. A test starts it as a process. */
import { loadConfig } from "../../../src/config/config.ts";
import { createLogger } from "../../../src/platform/logger.ts";
import { startService } from "../../../src/service/service.ts";

const STEP_MS = 10 * 60_000;

const { now } = Date;
let movedMs = 0;
Date.now = () => now() + movedMs;
process.on("SIGUSR2", () => (movedMs += STEP_MS));

const config = loadConfig(process.env, () => "");
const logger = createLogger("info", (line) => process.stderr.write(line), Date.now);
const service = await startService(config, logger);
process.once("SIGTERM", () => {
  void service[Symbol.asyncDispose]().then(() => process.exit(0));
});
