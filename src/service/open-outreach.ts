import { stableKey } from "../vault/stable-keys.ts";
import { createTokens, type Tokens } from "../account/tokens.ts";
import { openVault } from "../vault/vault.ts";
import type { OAuth } from "../account/oauth.ts";
import { makeId, sleep, systemClock, type Clock } from "../platform/clock.ts";
import type { Config } from "../config/config.ts";
import type { Announce } from "../delivery/announce.ts";
import type { EventLog } from "../log/event-log.ts";
import { logFiles } from "../log/log-files.ts";
import type { Logger } from "../platform/logger.ts";
import type { SocialNetwork } from "../networks/network.ts";
import { xPrices } from "../networks/x.ts";
import type { SafeFetch } from "../networks/safe-fetch.ts";
import type { OutreachContext, Sleep } from "../outreach/context.ts";
import { createSuppressionHashes } from "../outreach/suppression-hashes.ts";
import { parseTemplate } from "../template/template.ts";
import { openSources } from "../outreach/sources/sources.ts";
import { createStopWords } from "../outreach/stop-words.ts";
import type { Keyring } from "../privacy/keyring.ts";
import { openSocial } from "./open.ts";
import type { Projector } from "../projector/projector.ts";

export interface OutreachDeps {
  readonly config: Config;
  readonly key: Uint8Array;
  readonly eventLog: EventLog;
  readonly keyring: Pick<Keyring, "isForgotten">;
  readonly projector: Projector;
  readonly logger: Logger;
  readonly safeFetch: SafeFetch;
  readonly announce: Announce;
  /** Time as the machine has it, where nothing else is given. */
  readonly clock?: Clock;
  readonly sleep?: Sleep;
}

/** The outreach agent's parts, as the service and the commands work with them. */
export interface Outreach {
  readonly context: OutreachContext;
  readonly network: SocialNetwork;
  readonly oauth: OAuth;
  readonly tokens: Tokens;
}

/** Opens the vault, which `stack` closes. Undefined when X is not configured. Throws VaultKeyMismatch. */
export function openOutreach(deps: OutreachDeps, stack: AsyncDisposableStack): Outreach | undefined {
  const { config, key, eventLog, keyring, projector, logger, safeFetch, announce } = deps;
  const timing = { clock: deps.clock ?? systemClock, sleep: deps.sleep ?? sleep };
  const social = openSocial(config, config.http.publicUrl, safeFetch, timing.clock);
  if (social === undefined) return undefined;
  const { network, oauth } = social;
  const vault = stack.use(openVault(logFiles(config.log.file).vault, key));
  const holder = makeId();
  const tokens = stack.use(createTokens({ vault, oauth, eventLog, projector, holder, logger, announce, ...timing }));
  const { outreach } = config;
  const context: OutreachContext = {
    eventLog,
    projector,
    network,
    logger,
    announce,
    holder,
    makeId,
    ...timing,
    credentials: tokens,
    sources: openSources(outreach),
    rules: {
      // Never rendered where none is configured: then no run starts.
      template: outreach.template ?? parseTemplate("-"),
      requireConsent: outreach.requireConsent,
      dailyLimit: outreach.dailyLimit,
      hashes: createSuppressionHashes(stableKey(vault, key, "suppression")),
      isForgotten: keyring.isForgotten,
    },
    prices: xPrices({ accountOwnsApp: config.x?.accountOwnsApp === true }),
    isOptOut: createStopWords(outreach.stopWords),
    random: Math.random,
    timezone: outreach.timezone,
    runMaxMs: outreach.runMaxMinutes * 60_000,
    settleMs: outreach.inDoubtSettleSeconds * 1000,
    spacingMs: outreach.sendSpacingSeconds === undefined ? undefined : outreach.sendSpacingSeconds * 1000,
  };
  return { context, network, oauth, tokens };
}
