// This file builds what outreach needs, for the service and for commands: the X account and the context. It starts no
// run.
import { randomBytes } from "node:crypto";
import { createTokens } from "../account/tokens.ts";
import { xPrices } from "../networks/x/x-api.ts";
import { newestTime, type OutreachContext } from "../outreach/run-context.ts";
import { createRunReports } from "../outreach/report/make-team-report.ts";
import { openSources } from "../outreach/sources/open-sources.ts";
import { toOutreachRules } from "../outreach/run-rules.ts";
import { createStopWords, createWishReader } from "../outreach/detect-opt-out-replies.ts";
import { createOptOutCode } from "../template/short-link.ts";
import type { Social } from "./connect-networks.ts";
import type { Account } from "../account/link-and-unlink-account.ts";
import type { Reachlog } from "../privacy/log-context-types.ts";

/**
 * Length of the secret, in bytes, from which the codes of one recipient's links are derived: 128 bits, so that no code
 * can be guessed.
 */
const LINK_SECRET_BYTES = 16;

function newSecret(): string {
  return randomBytes(LINK_SECRET_BYTES).toString("hex");
}

/** Opens the access to the X account. Disposing it waits for a refresh of its tokens in progress. */
export function openAccount(context: Reachlog, social: Social): Account & AsyncDisposable {
  const tokens = createTokens({ ...context, oauth: social.oauth });
  const pinnedHandle = context.config.x?.account;
  return { ...social, tokens, pinnedHandle, [Symbol.asyncDispose]: tokens[Symbol.asyncDispose] };
}

/** Returns the context of outreach, for the service and for commands. */
export function outreachContext(context: Reachlog, account: Account): OutreachContext {
  const { config, logClock, keyring, projector } = context;
  const { outreach } = config;
  return {
    ...context,
    network: account.network,
    credentials: account.tokens,
    skewMs: () => logClock.skewMs(newestTime(projector)),
    sources: openSources(outreach),
    // Without a configured template these rules hold an empty one. It is never sent, because no run starts without a
    // template.
    rules: toOutreachRules(context),
    prices: xPrices({ accountOwnsApp: config.x?.accountOwnsApp === true }),
    readWish: createWishReader(outreach.stopWords, outreach.trackingStopWords),
    isTrackingOptOut: createStopWords(outreach.trackingStopWords),
    newLinkSecret: config.links.isPersonal ? newSecret : undefined,
    reportEnd: createRunReports(context),
    newOptOutCode: () => createOptOutCode(newSecret()),
    keptOptOuts: keyring.keptOptOuts,
    timezone: outreach.timezone,
    runMaxMs: outreach.runMaxMinutes * 60_000,
    settleMs: outreach.inDoubtSettleSeconds * 1000,
    spacingMs: outreach.sendSpacingSeconds === undefined ? undefined : outreach.sendSpacingSeconds * 1000,
  };
}
