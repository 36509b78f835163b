import { unlinkAccount } from "../account/link.ts";
import { systemClock } from "../platform/clock.ts";
import { createLogger } from "../platform/logger.ts";
import { openAccount } from "../service/outreach.ts";
import { connectNetworks } from "../service/networks.ts";
import { Command, group, JSON_OPTION, type MakeCommand } from "./shared/command.ts";
import { answer, EXIT, printable } from "./shared/terminal.ts";
import { COMMAND_METADATA, openSession } from "./shared/log-session.ts";
import { usageError } from "../platform/service-error.ts";

const show: MakeCommand = (terminal) =>
  new Command("show")
    .summary("show which X account the service acts for")
    .option(...JSON_OPTION)
    .action(async ({ json }) => {
      await using session = await openSession(terminal);
      const { user, scopes, authorized } = session.projector.state("account");
      const state = authorized ? `authorized for ${scopes.join(" ")}` : "no longer authorized";
      const text =
        user === null
          ? "no account is linked\n"
          : `@${printable(user.username)} (${printable(user.name)}, ${user.id}): ${state}\n`;
      answer(terminal, json, { user, scopes, authorized }, text);
    });

const unlink: MakeCommand = (terminal) =>
  new Command("unlink")
    .summary("revoke the grant at X and delete the tokens")
    .description(
      `Revokes the grant at X and deletes the tokens; another account may then authorize.
Exit code 1 when X did not confirm: revoke it in X's settings then.`,
    )
    .option(...JSON_OPTION)
    .action(async ({ json }) => {
      await using session = await openSession(terminal);
      const logger = createLogger(session.config.logLevel, terminal.err, systemClock);
      const { social } = connectNetworks(session.config, session.logClock.now);
      if (social === undefined) throw usageError("X is not configured: X_CLIENT_ID is needed to revoke the grant");
      await using linked = openAccount({ ...session, social, logger, announce: async () => {} });
      const unlinked = await unlinkAccount({ ...session, ...linked }, COMMAND_METADATA);
      const revoked = unlinked?.revoked ?? null;
      const result = revoked === true ? "and the grant is revoked" : "but X did not confirm the revocation";
      const text = revoked === null ? "no account is linked\n" : `unlinked, ${result}\n`;
      answer(terminal, json, { unlinked: unlinked !== undefined, revoked }, text);
      return revoked === false ? EXIT.fault : EXIT.ok;
    });

export const account = group("account", "show or unlink the authorized X account", [show, unlink]);
