import { audit as auditCommands } from "../../../src/commands/audit.ts";
import { account as accountCommands } from "../../../src/commands/account.ts";
import { deliveries as deliveryCommands } from "../../../src/commands/deliveries.ts";
import { outreach as outreachCommands } from "../../../src/commands/outreach.ts";
import { token as tokenCommands } from "../../../src/commands/token.ts";
import { links as linkCommands } from "../../../src/commands/links.ts";
import { recipients as recipientCommands } from "../../../src/commands/recipients.ts";
import { toCommand, withOperations } from "../../../src/commands/shared/operation-command.ts";
import { showClicks, showStats } from "../../../src/history/history.operations.ts";
import { showResults } from "../../../src/history/results.operations.ts";
import { showQuota } from "../../../src/outreach/outreach.operations.ts";
import { forgetClicks as clicksForget } from "../../../src/privacy/privacy.operations.ts";
import { showChange, showHistory } from "../../../src/recipients/audit.operations.ts";
import { forgetRecipient, listRecipients, showRecipient } from "../../../src/recipients/recipients.operations.ts";
import { loadOperations } from "../../../src/operations.ts";

/** Commands made from the descriptions of operations, as the command line makes them. */
export const [stats, quota, clicks] = [toCommand(showStats), toCommand(showQuota), toCommand(showClicks)];
export const results = toCommand(showResults);
export const [forget, forgetClicks] = [toCommand(forgetRecipient), toCommand(clicksForget)];
export const [contacts, contact] = [toCommand(listRecipients), toCommand(showRecipient)];
export const recipients = withOperations(recipientCommands, await loadOperations("recipients"));
export const account = withOperations(accountCommands, await loadOperations("account"));
export const outreach = withOperations(outreachCommands, await loadOperations("outreach"));
export const token = withOperations(tokenCommands, await loadOperations("token"));
export const links = withOperations(linkCommands, await loadOperations("links"));
export const [showHistoryCommand, showChangeCommand] = [toCommand(showHistory), toCommand(showChange)];
export const audit = withOperations(auditCommands, await loadOperations("audit"));
export const deliveries = withOperations(deliveryCommands, await loadOperations("deliveries"));
