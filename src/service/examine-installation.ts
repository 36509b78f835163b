import { existsSync, readFileSync } from "node:fs";
import { openCheckpoint, type WitnessConfig } from "eventstore-lite/proof";
import { signHeadNow } from "../log/sign-heads-and-prove-events.ts";
import { isSkewed, SKEW_REMEDY, skewInWords } from "../log/log-time-and-clock-skew.ts";
import { askWitness, cosignedPosition } from "../log/cosigning.ts";
import { readMasterKey } from "../vault/master-key.ts";
import { isoTime, systemClock } from "../platform/clock-ids-and-timers.ts";
import { newestTime } from "../outreach/run-context.ts";
import type { Config } from "../config/config.ts";
import { createStopWords } from "../outreach/detect-opt-out-replies.ts";
import { describeWindow } from "../outreach/send-window.ts";
import { checkOptOut } from "../template/check-opt-out.ts";
import { missingPlaceholders } from "../template/template.ts";
import { openAccount } from "./open-account-and-outreach.ts";
import { createSafeFetch, JSON_BODY } from "../networks/safe-fetch.ts";
import type { TracingOptions } from "../tracing/tracing.ts";
import { connectNetworks } from "./connect-networks.ts";
import { keysMissing, missingKeys } from "../privacy/find-lost-keys.ts";
import { refuseLostLog } from "../privacy/bind-secrets-to-log.ts";
import { locateLog } from "../privacy/locate-log.ts";
import { openLog, openStoredLog } from "../privacy/open-log.ts";
import { finding, type Finding } from "./examination-finding.ts";
import { countFreeTexts, warnOfTexts } from "../delivery/warn-of-few-free-messages.ts";
import type { Logger } from "../platform/logger.ts";
import { openReachlog } from "./open-reachlog.ts";
import { listPartNames } from "../config/optional-parts.ts";
import { describeExpiries } from "../config/parse-api-tokens.ts";

/**
 * The examination of an installation waits at most this long, in ms, for the answer of a network or of the trace
 * collector.
 */
const CHECK_TIMEOUT_MS = 10_000;

/**
 * Examines configuration, log, keys and vault, and whether a crash would write a core dump. `isOnline` also asks each
 * network, the trace collector and the witness, without sending a message.
 */
export async function examineInstallation(
  config: Config,
  { isOnline, logger }: { readonly isOnline: boolean; readonly logger: Logger },
): Promise<readonly Finding[]> {
  return [
    await finding("configuration", () => checkCompleteness(config)),
    ...config.warnings.flatMap((detail) => toWarnings("configuration", detail)),
    ...describeExpiries(config.http.tokens, systemClock()).flatMap((detail) => toWarnings("tokens", detail)),
    ...optOuts(config),
    ...sendWindow(config),
    ...toWarnings("core dumps", coreDumpWarning()),
    ...(await checkFiles(config)),
    ...(isOnline ? await checkNetworks(config, logger) : []),
  ];
}

/** Lists the optional parts of the configuration that are not set, for an operator who may have forgotten one. */
function checkCompleteness(config: Config): string | { readonly missing: string } {
  const { missing } = listPartNames(config);
  return missing.length === 0 ? "complete" : { missing: `without faults; not configured: ${missing.join(", ")}` };
}

function toWarnings(what: string, detail: string | undefined): Finding[] {
  return detail === undefined ? [] : [{ what, state: "warning", detail }];
}

function optOuts({ x, outreach: { template, stopWords } }: Config): Finding[] {
  if (x === undefined || template === undefined) return [];
  const { isOffered, detail } = checkOptOut(template, createStopWords(stopWords));
  return [{ what: "opt-outs", state: isOffered ? "ok" : "warning", detail }];
}

function sendWindow({ outreach: { window, timezone } }: Config): Finding[] {
  if (window === undefined) return [];
  return [{ what: "sending window", state: "ok", detail: describeWindow(window, timezone, systemClock()) }];
}

async function checkFiles(config: Config): Promise<Finding[]> {
  const place = locateLog(config);
  const { store, secrets } = place;
  const reached = await finding("log", async () => {
    if (await store.isThere()) return "";
    await refuseLostLog(place);
    return { missing: `${store.name} is missing; the first start creates it` };
  });
  if (reached.detail !== "") return [reached];
  const log = await finding("log", () => checkLog(config));
  return [
    ...[...(await store.warnings()), ...(await store.unprotected())].flatMap((detail) => toWarnings("log", detail)),
    log,
    ...(log.state === "wrong" ? [] : [await finding("keys", () => checkKeys(config))]),
    await finding("clock", () => checkClock(config)),
    ...(log.state === "wrong" || config.messaging?.provider !== "whatsapp" ? [] : await checkFreeTexts(config)),
    await finding("vault", async () => {
      if (!(await secrets.vault.isThere())) return { missing: "missing; the first start creates it" };
      if (typeof secrets.key === "string" && !existsSync(secrets.key))
        throw new Error(`${secrets.key} is gone: restore it, or set REACHLOG_KEY`);
      await readMasterKey(secrets);
      return "opens with this key";
    }),
  ];
}

async function checkLog(config: Config): Promise<string> {
  const checked = await countWhole(config);
  await using context = await openReachlog(config);
  const { projector } = context;
  const { template } = config.outreach;
  const missing =
    template === undefined ? [] : missingPlaceholders(template, projector.state("contacts").fields.keys());
  if (missing.length > 0) throw new Error(`MESSAGE_TEMPLATE: no imported recipient has ${missing.join(", ")}`);
  return `${checked} events, the chain is whole`;
}

/**
 * Verifies the log's hash chain, and returns its number of events. Throws if the chain is broken, because no state may
 * be folded from such a log.
 */
async function countWhole(config: Config): Promise<number> {
  await using log = await openLog(config);
  const { ok, checked, fault } = await log.verify();
  if (!ok) throw new Error(`the chain is broken at position ${fault?.position}: ${fault?.reason}; restore a backup`);
  return checked;
}

/**
 * Compares this machine's clock with the log's, which decides for all instances, and both with the time of the newest
 * event.
 */
async function checkClock(config: Config): Promise<string> {
  await using context = await openReachlog(config);
  const { projector } = context;
  const { now, skewMs } = context.logClock;
  const newest = newestTime(projector);
  const apartMs = skewMs(newest);
  // If the newest event is much later than the log's clock, then either this clock is slow, or an instance whose clock
  // was fast recorded the event.
  const isAhead = newest !== undefined && isSkewed(Date.parse(newest) - now()) && Date.parse(newest) > now();
  if (isAhead)
    throw new Error(`the newest event was recorded at ${newest}, and this clock shows ${isoTime(now())}: ${HEAL}`);
  if (isSkewed(apartMs)) throw new Error(`${skewInWords(apartMs)}: no run starts; ${SKEW_REMEDY}`);
  return Math.abs(apartMs) < 1_000 ? "agrees with the log's to the second" : skewInWords(apartMs);
}

async function checkFreeTexts(config: Config): Promise<Finding[]> {
  await using store = await openLog(config);
  return toWarnings("messaging", warnOfTexts(await countFreeTexts(store, store.logClock.now())));
}

const HEAL =
  "no run starts. If this clock is wrong, correct it with NTP. If it is right, another one was ahead: " +
  "say so with reachlog clock-corrected";

async function checkKeys(config: Config): Promise<string> {
  await using store = await openLog(config);
  const missing = await missingKeys(store, store.keyring, store.logClock.now());
  if (missing.length > 0) throw new Error(keysMissing(missing.length));
  return "each one that the log names is present, or was deleted on purpose";
}

async function checkNetworks(config: Config, logger: Logger): Promise<Finding[]> {
  const { channels } = connectNetworks(config);
  const checks = channels.map(async (channel): Promise<Finding> => {
    const { ok, detail } = await channel.check(CHECK_TIMEOUT_MS);
    return { what: `${channel.name} (${channel.network})`, state: ok ? "ok" : "wrong", detail };
  });
  if (config.x !== undefined) checks.push(finding("outreach (x)", () => checkAccount(config, logger)));
  if (config.x?.appBearer !== undefined) checks.push(finding("signals (x)", () => checkSignals(config)));
  const { tracing, witness } = config;
  if (tracing !== undefined) checks.push(finding("traces", () => checkCollector(tracing)));
  if (witness !== undefined) checks.push(finding("witness", () => checkWitness(config, witness)));
  return Promise.all(checks);
}

const NO_ACCOUNT = { missing: "no account is authorized yet: open /social/auth of the running service in a browser" };

/** Asks X which account is authorized. An expired access token is refreshed first, as the service does. */
async function checkAccount(config: Config, logger: Logger): Promise<string | { readonly missing: string }> {
  if (!(await locateLog(config).store.isThere())) return NO_ACCOUNT;
  await using context = await openReachlog(config, { logger });
  if (context.projector.state("account").user === null) return NO_ACCOUNT;
  const { social } = connectNetworks(config, context.clock);
  if (social === undefined) throw new Error("X is not configured");
  await using account = openAccount(context, social);
  const { tokens, network } = account;
  const { username } = await tokens.use((token) => network.me(token));
  return `the grant of @${username} works`;
}

/** Asks X, with the app's own token, for the app's subscriptions. */
async function checkSignals(config: Config): Promise<string> {
  await connectNetworks(config).social?.stream?.check();
  return "X accepts the app's bearer token";
}

/** Checks that the trace collector answers, by sending it a request without spans. */
async function checkCollector({ endpoint }: TracingOptions): Promise<string> {
  const url = `${endpoint}/v1/traces`;
  const request = { method: "POST", headers: JSON_BODY, body: '{"resourceSpans":[]}', timeoutMs: CHECK_TIMEOUT_MS };
  const { status } = await createSafeFetch({ allowedOrigins: [url] })(url, request);
  if (status < 300) return `the collector accepts traces at ${url}`;
  throw new Error(
    `the collector answers ${url} with ${status}: OTEL_EXPORTER_OTLP_ENDPOINT is its base URL, without /v1/traces`,
  );
}

/**
 * Has the witness cosign the log's newest head. A witness refuses if it knows another history of the log, or a longer
 * one.
 */
async function checkWitness(config: Config, witness: WitnessConfig): Promise<string> {
  if (!(await locateLog(config).store.isThere())) return "there is no log yet";
  await using log = await openStoredLog(config);
  const { checkpoints } = log;
  const { publicKey } = await checkpoints.loadKey();
  const signed = await signHeadNow(log, checkpoints, systemClock);
  if ("loss" in signed) throw new Error(signed.loss);
  const head = { note: signed.note, checkpoint: openCheckpoint(signed.note, publicKey) };
  const witnessed = await askWitness(log, witness, head, await cosignedPosition(checkpoints, publicKey));
  const { position } = head.checkpoint;
  if (witnessed.result === "cosigned") return `${witness.cosigner.name} cosigned the head of ${position} events`;
  if (witnessed.result === "stale") return witnessed.detail;
  const remedy = "compare this log with a backup: audit verify --head, audit consistency";
  throw new Error(witnessed.result === "split" ? `${witnessed.detail}; ${remedy}` : witnessed.detail);
}

/** File in which Linux lists the limits of this process; absent on other systems. */
const LIMITS = "/proc/self/limits";

const WARNING =
  "core dumps are on: a crash of the runtime itself would write the service's memory, and all secrets in it, to a file; " +
  "start it with ulimit -c 0 (systemd: LimitCORE=0; containers: --ulimit core=0)";

/**
 * Returns a warning if a crash would write a core dump, with keys in it. The program cannot switch that off by itself.
 */
function coreDumpWarning(): string | undefined {
  if (!existsSync(LIMITS)) return undefined;
  const soft = /^Max core file size\s+(\S+)/m.exec(readFileSync(LIMITS, "utf8"))?.[1];
  return soft === undefined || soft === "0" ? undefined : WARNING;
}
