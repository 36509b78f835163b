import { randomBytes } from "node:crypto";
import { createTokens } from "../account/tokens.ts";
import type { Config } from "../config/config.ts";
import type { LogClock } from "../log/log-clock.ts";
import { xPrices } from "../networks/x/x-api.ts";
import { newestTime, type OutreachContext } from "../outreach/context.ts";
import { openSources } from "../outreach/sources/sources.ts";
import { toOutreachRules, type RuleParts } from "../outreach/run-rules.ts";
import { createStopWords, createWishReader } from "../outreach/stop-words.ts";
import { makeId, sleep } from "../platform/clock.ts";
import { parseTemplate } from "../template/template.ts";
import type { Vault } from "../vault/vault.ts";
import type { Social } from "./networks.ts";

/** 128 bits, so that no code derived from it can be guessed. */
const LINK_SECRET_BYTES = 16;

/** The dependencies that the account and the outreach agent share. */
interface WorkDeps
  extends
    Pick<OutreachContext, "eventLog" | "projector" | "logger" | "announce" | "leaseScale" | "wallClock">,
    Partial<Pick<OutreachContext, "holder">> {
  readonly logClock: LogClock;
  readonly sleep?: OutreachContext["sleep"] | undefined;
}

/** The account that the service acts for: its network, and the tokens to call it. */
export type Account = ReturnType<typeof openAccount>;

/** Disposing it waits for a refresh of the tokens in progress. */
export function openAccount(deps: WorkDeps & { readonly social: Social; readonly vault: Vault }) {
  const { social } = deps;
  const timing = { clock: deps.logClock.now, sleep: deps.sleep ?? sleep };
  const tokens = createTokens({ ...deps, ...timing, oauth: social.oauth, holder: deps.holder ?? makeId() });
  return { ...social, tokens, [Symbol.asyncDispose]: tokens[Symbol.asyncDispose] };
}

interface OutreachDeps extends WorkDeps, RuleParts {
  readonly config: Config;
  readonly account: Pick<Account, "network" | "tokens">;
}

/** Returns the outreach agent's dependencies, in the service and in commands. */
export function outreachContext(deps: OutreachDeps): OutreachContext {
  const { config, account, logClock, projector } = deps;
  const { outreach } = config;
  return {
    ...deps,
    network: account.network,
    credentials: account.tokens,
    holder: deps.holder ?? makeId(),
    makeId,
    clock: logClock.now,
    skewMs: () => logClock.skewMs(newestTime(projector)),
    sleep: deps.sleep ?? sleep,
    sources: openSources(outreach),
    // The fallback is never rendered: no run starts without a template.
    rules: toOutreachRules(deps, outreach.template ?? parseTemplate("-")),
    prices: xPrices({ accountOwnsApp: config.x?.accountOwnsApp === true }),
    readWish: createWishReader(outreach.stopWords, outreach.trackingStopWords),
    isTrackingOptOut: createStopWords(outreach.trackingStopWords),
    newLinkSecret: config.links.isPersonal ? () => randomBytes(LINK_SECRET_BYTES).toString("hex") : undefined,
    random: Math.random,
    timezone: outreach.timezone,
    runMaxMs: outreach.runMaxMinutes * 60_000,
    settleMs: outreach.inDoubtSettleSeconds * 1000,
    spacingMs: outreach.sendSpacingSeconds === undefined ? undefined : outreach.sendSpacingSeconds * 1000,
  };
}
