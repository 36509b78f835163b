import { toCommand } from "../../../src/commands/shared/operation-command.ts";
import { showClicks, showStats } from "../../../src/history/history.operations.ts";
import { listLinks } from "../../../src/links/links.operations.ts";
import { showQuota } from "../../../src/outreach/outreach.operations.ts";

/** The commands of operations, as the command line makes them. */
export const [stats, quota, clicks, linksList] = [showStats, showQuota, showClicks, listLinks].map(toCommand) as [
  ReturnType<typeof toCommand>,
  ReturnType<typeof toCommand>,
  ReturnType<typeof toCommand>,
  ReturnType<typeof toCommand>,
];
