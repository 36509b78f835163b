import { toCommand } from "../../../src/commands/shared/operation-command.ts";
import { showClicks, showStats } from "../../../src/history/history.operations.ts";
import { showQuota } from "../../../src/outreach/outreach.operations.ts";

/** The commands of operations, as the command line makes them. */
export const [stats, quota, clicks] = [toCommand(showStats), toCommand(showQuota), toCommand(showClicks)];
