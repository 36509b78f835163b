import { unlinkAccount } from "../account/link.ts";
import { systemClock } from "../platform/clock.ts";
import { createLogger } from "../platform/logger.ts";
import { openAccount } from "../service/account.ts";
import { connectNetworks } from "../service/networks.ts";
import {
  Command,
  readConfig,
  EXIT,
  group,
  JSON_OPTION,
  usageError,
  type MakeCommand,
  type Terminal,
} from "./shared/command.ts";
import { COMMAND_METADATA, openSession } from "./shared/log-session.ts";
import { printable } from "./shared/table.ts";

const show: MakeCommand = (terminal, exit) =>
  new Command("show")
    .summary("show which X account the service acts for")
    .option(...JSON_OPTION)
    .action(exit(({ json }) => showAccount(terminal, json === true)));

const unlink: MakeCommand = (terminal, exit) =>
  new Command("unlink")
    .summary("revoke the grant at X and delete the tokens")
    .description(
      `Revokes the grant at X and deletes the tokens; another account may then authorize.
Exit code 1 when X did not confirm: revoke it in X's settings then.`,
    )
    .option(...JSON_OPTION)
    .action(exit(({ json }) => unlinkX(terminal, json === true)));

export const account = group("account", "show or unlink the authorized X account", [show, unlink]);

async function showAccount(terminal: Terminal, json: boolean): Promise<number> {
  await using session = await openSession(readConfig(terminal));
  const { user, scopes, authorized } = session.projector.state("account");
  if (json) terminal.out(`${JSON.stringify({ user, scopes, authorized })}\n`);
  else if (user === null) terminal.out("no account is linked\n");
  else {
    const state = authorized ? `authorized for ${scopes.join(" ")}` : "no longer authorized";
    terminal.out(`@${printable(user.username)} (${printable(user.name)}, ${user.id}): ${state}\n`);
  }
  return EXIT.ok;
}

async function unlinkX(terminal: Terminal, json: boolean): Promise<number> {
  const config = readConfig(terminal);
  const logger = createLogger(config.logLevel, terminal.err, systemClock);
  await using session = await openSession(config);
  const { social } = connectNetworks(config, session.logClock.now);
  if (social === undefined) throw usageError("X is not configured: X_CLIENT_ID is needed to revoke the grant");
  await using account = openAccount({ ...session, social, logger, announce: async () => {} });
  const unlinked = await unlinkAccount({ ...session, ...account }, COMMAND_METADATA);
  const revoked = unlinked?.revoked ?? null;
  if (json) terminal.out(`${JSON.stringify({ unlinked: unlinked !== undefined, revoked })}\n`);
  else if (revoked === null) terminal.out("no account is linked\n");
  else terminal.out(`unlinked, ${revoked ? "and the grant is revoked" : "but X did not confirm the revocation"}\n`);
  return revoked === false ? EXIT.fault : EXIT.ok;
}
