import { parseVerifierKey, SigningKeyRefused, type WitnessConfig } from "eventstore-lite/proof";
import type { S3Access } from "../networks/s3/client.ts";
import { decodeKey, secret, type Secret } from "../platform/secret.ts";
import type { TracingOptions } from "../tracing/tracing.ts";
import { readAds, readMeta, readX, readChat, readMessaging } from "./channels.ts";
import { requireAllOrNone, readEnvironment, type Settings, warnOfMisspelt } from "./environment.ts";
import { configurationError, createReport, type Report } from "./configuration-error.ts";
import { readHttp, type RoutePaths } from "./http.ts";
import { readLog } from "./database.ts";
import { type OutreachConfig, readLinks, readOutreach } from "./outreach.ts";
import type { Environment, Variable } from "./schema.ts";
import { readSecretFiles } from "./secret-files.ts";
import { allowPlainHttp, readUrl } from "./check-urls-and-plain-http.ts";
import { readWebhooks } from "./outgoing-webhooks.ts";

/** Everything that an operator can set, checked. The part of a network without credentials is undefined. */
export type Config = ReturnType<typeof loadConfig>;

/**
 * Turns the environment into a {@link Config}. Throws one ServiceError (configuration) that names every fault. An empty
 * variable counts as unset.
 */
export function loadConfig(
  given: Settings["env"],
  /** Function that reads the text of the files that `MESSAGE_TEMPLATE_FILE` and `API_TOKENS_FILE` name. */
  readFile: Settings["readFile"],
  /**
   * Returns the service's paths, against which `OPEN_ROUTES` is checked. If undefined, `OPEN_ROUTES` is not checked.
   */
  paths?: () => RoutePaths,
) {
  const { env, report } = readSecretFiles(given, createReport());
  const values = readEnvironment(env, report);
  allowPlainHttp(values.PLAIN_HTTP_HOSTS, report);
  const from = { values, env, readFile, report };
  const http = readHttp(from, paths);
  const links = readLinks(from, http.publicUrl);
  const parts = {
    http,
    links,
    log: readLog(values.DATABASE_URL, values, report),
    /**
     * The master key as text; `decodeKey` gives its bytes. Undefined if the key comes from a key file next to the log.
     */
    key: readKey("REACHLOG_KEY", values.REACHLOG_KEY, report),
    /** The master key that `key rotate` changes to. Undefined if the key comes from the key file. */
    nextKey: readKey("REACHLOG_KEY_NEXT", values.REACHLOG_KEY_NEXT, report),
    x: readX(from),
    outreach: readOutreach(from, links.base, http.publicUrl),
    meta: readMeta(from),
    openAiAds: readAds(from, "OPENAI_ADS_PIXEL_ID", "OPENAI_ADS_API_KEY", "OPENAI_ADS_API_URL"),
    snap: readAds(from, "SNAP_PIXEL_ID", "SNAP_ACCESS_TOKEN", "SNAP_API_URL"),
    chat: readChat(from),
    messaging: readMessaging(from),
    webhooks: readWebhooks(from),
    /** Where traces are sent. Undefined if none are collected. */
    tracing: readTracing(values, report),
    /**
     * Address of a trace in a browser, with `{id}` in place of the trace's id. Undefined if the console shows ids
     * without a link.
     */
    traceUrl: values.TRACE_URL,
    /** Access to an S3-compatible store for sealed segments and incremental backups. Undefined if not configured. */
    objectStore: readObjectStore(from),
    /** The witness that cosigns the log's heads. Undefined if there is none. */
    witness: readWitness(from),
  };
  // Instances that share a log on PostgreSQL have no common key file, so each needs the key as a setting.
  if (parts.log.kind === "postgres" && parts.key === undefined)
    report.fault("REACHLOG_KEY", "missing: a log on PostgreSQL has no key file", WANTED_OF_KEYS);
  if (parts.outreach.report.isAfterRun && parts.chat === undefined)
    report.warn("REPORT is run, but no chat is configured: runs end without a report.");
  warnOfMisspelt(given, report);
  if (report.faults.length > 0) throw configurationError(report.faults);
  return {
    ...parts,
    /** The API token that commands send when they call the running service. */
    token: values.REACHLOG_TOKEN === undefined ? undefined : secret(values.REACHLOG_TOKEN),
    /**
     * Time in seconds that a click may wait for its message. If the oldest pending click has waited longer, a chat or
     * messaging channel sends one digest instead of a message for each click.
     */
    digestAfterSeconds: values.CHAT_DIGEST_AFTER_SECONDS,
    bots: values.BOT_CLICKS,
    /** To which click a conversion is attributed: the last or the first one in this number of days before it. */
    attribution: { model: values.ATTRIBUTION, days: values.ATTRIBUTION_DAYS },
    auditReads: values.AUDIT_READS === "on",
    /**
     * Whole days that personal data of clicks and direct sends is kept. Undefined if it is kept until it is forgotten
     * by hand.
     */
    retentionDays: values.RETENTION_DAYS,
    /**
     * Age in whole days after which a service archives events. If undefined, only the command `reachlog archive` does.
     */
    archiveAfterDays: values.ARCHIVE_AFTER_DAYS,
    logLevel: values.LOG_LEVEL,
    /** Returns today's rules of outreach with these values in place of settings. Throws as {@link loadConfig} does. */
    outreachWith: (changes: Settings["env"]): OutreachConfig => loadConfig({ ...given, ...changes }, readFile).outreach,
    /** Sentences for the operator, shown at start. None holds a secret. */
    warnings: report.warnings,
  };
}

/** Reads where traces are sent, and which share of them. The settings have the names that OpenTelemetry defines. */
function readTracing(values: Environment, report: Report): TracingOptions | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: ratio } = values;
  if (endpoint === undefined) return undefined;
  return { endpoint: readUrl("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, report), ratio: Number(ratio) };
}

function readWitness({ values, env, report }: Settings): WitnessConfig | undefined {
  const { WITNESS_URL: url, WITNESS_PUBLIC_KEY: key } = values;
  requireAllOrNone(["WITNESS_URL", "WITNESS_PUBLIC_KEY"], env, report);
  if (url === undefined || key === undefined) return undefined;
  const address = readUrl("WITNESS_URL", url, report);
  try {
    return { url: address, cosigner: parseVerifierKey(key) };
  } catch (fault) {
    if (!(fault instanceof SigningKeyRefused)) throw fault;
    report.fault("WITNESS_PUBLIC_KEY", "no key of a witness", "NAME+ID+KEY, as reachlog witness serve prints it");
    return undefined;
  }
}

/** Reads the access to an S3-compatible store. Undefined if not configured. */
function readObjectStore({ values, env, report }: Settings): S3Access | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: key, AWS_REGION: region } = values;
  requireAllOrNone(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], env, report);
  const endpoint = readUrl("AWS_ENDPOINT_URL", values.AWS_ENDPOINT_URL ?? `https://s3.${region}.amazonaws.com`, report);
  if (accessKeyId === undefined || key === undefined) return undefined;
  return { endpoint, region, accessKeyId, secretAccessKey: secret(key) };
}

function readKey(variable: Variable, raw: string | undefined, report: Report): Secret | undefined {
  if (raw === undefined) return undefined;
  if (decodeKey(raw) === undefined) report.fault(variable, "not a key of 32 bytes", WANTED_OF_KEYS);
  return secret(raw);
}

const WANTED_OF_KEYS = "64 hex digits or base64 (openssl rand -base64 32)";
