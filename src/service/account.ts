import { createTokens, type Tokens } from "../account/tokens.ts";
import type { Announce } from "../delivery/suspension.ts";
import type { EventLog } from "../log/event-log.ts";
import type { LogClock } from "../log/log-clock.ts";
import { makeId, sleep, type Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/logger.ts";
import type { Sleep } from "../outreach/context.ts";
import type { Projector } from "../projector/projector.ts";
import type { Vault } from "../vault/vault.ts";
import type { Social } from "./networks.ts";

/** The account that the service acts for: its network, and the right to call it. */
export interface Account extends Social, AsyncDisposable {
  readonly tokens: Tokens;
}

/** What the account and the outreach agent work with. */
export interface WorkDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly logger: Logger;
  readonly announce: Announce;
  /** Names this instance in leases; default: a name of its own. */
  readonly holder?: string;
  readonly leaseScale?: number | undefined;
  readonly logClock: LogClock;
  /** Time as the machine has it, where nothing else is given. */
  readonly wallClock?: Clock | undefined;
  readonly sleep?: Sleep | undefined;
}

export interface AccountDeps extends WorkDeps {
  readonly social: Social;
  readonly vault: Vault;
}

/** Disposing it waits for a refresh of the tokens under way. */
export function openAccount(deps: AccountDeps): Account {
  const { social } = deps;
  const timing = { clock: deps.logClock.now, sleep: deps.sleep ?? sleep };
  const tokens = createTokens({ ...deps, ...timing, oauth: social.oauth, holder: deps.holder ?? makeId() });
  return { ...social, tokens, [Symbol.asyncDispose]: tokens[Symbol.asyncDispose] };
}
