/**
 * Program for tests: the service as one of several instances on a log in a file, with leases of a tenth of their usual
 * duration.
 */
import { loadConfig } from "../../../src/config/config.ts";
import { createLogger } from "../../../src/platform/logger.ts";
import { startService } from "../../../src/service/service.ts";

const LEASE_SCALE = 0.1;

const config = loadConfig(process.env, () => "");
const logger = createLogger("info", (line) => process.stderr.write(line), Date.now);
const service = await startService(config, logger, { isShared: true, leaseScale: LEASE_SCALE });
process.once("SIGTERM", () => {
  void service[Symbol.asyncDispose]().then(() => process.exit(0));
});
