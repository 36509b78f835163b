import type { EventType } from "../../events/event-types-and-codec.ts";
import type { WebhookChannel } from "../../events/channel-and-lane-names.ts";
import { SUBSCRIBABLE } from "../../events/dispatches-requested-by-events.ts";
import { compileFilter, FilterRefused } from "../networks/webhook-filter-expression.ts";
import { secret, type Secret } from "../platform/secret.ts";
import {
  requireAllOrNone,
  findClosest,
  commaList,
  readEnvironment,
  readSetting,
  quoteValue,
  type RawEnvironment,
  type Settings,
} from "./environment.ts";
import type { Report } from "./configuration-error.ts";
import {
  isWebhookName,
  listWebhookNames,
  nameSetting,
  nameSettingsIn,
  unnamedEnvironment,
  WANTED_NAME,
} from "./named-webhooks.ts";
import type { Environment } from "./schema.ts";
import { readUrl } from "./check-urls-and-plain-http.ts";

/** Maximum number of webhooks of a service, because each has a lease to renew, and reads the log separately. */
export const WEBHOOKS_MAX = 10;

/** Minimum size of a webhook's secret, in bytes, as Standard Webhooks requires. */
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;

/**
 * Maximum number of headers that an operator may add for a receiver's gateway. Servers limit the headers of a request;
 * a token or two should be enough.
 */
const HEADERS_MAX = 10;
const HEADERS_CHARS_MAX = 4_096;

const SETTINGS = ["WEBHOOK_URL", "WEBHOOK_SECRET", "WEBHOOK_EVENTS"] as const;
const OPTIONS = ["WEBHOOK_FILTER", "WEBHOOK_ORDER", "WEBHOOK_HEADERS"] as const;

export type WebhookConfig = NonNullable<ReturnType<typeof readWebhook>>;

/** Reads all webhooks: first the one without a name, then the others, sorted by name. */
export function readWebhooks({ values, env, report }: Settings): readonly WebhookConfig[] {
  const names = listWebhookNames(env);
  const named = names.map((name) => {
    if (!isWebhookName(name)) {
      report.fault(nameSetting("WEBHOOK_URL", name), `${quoteValue(name)} cannot name a webhook`, WANTED_NAME);
      return undefined;
    }
    const own = unnamedEnvironment(env, name);
    const channel: WebhookChannel = `webhook-${name.toLowerCase().replaceAll("_", "-")}`;
    const reportOwn: Report = {
      ...report,
      fault: (...said) => report.fault(...(said.map((text) => nameSettingsIn(text, name)) as typeof said)),
      warn: (text) => report.warn(nameSettingsIn(text, name)),
    };
    return readWebhook(channel, readEnvironment(own, reportOwn), own, reportOwn);
  });
  const all = [readWebhook("webhook", values, env, report), ...named].filter((one) => one !== undefined);
  if (all.length > WEBHOOKS_MAX) {
    report.fault("WEBHOOK_URL", `${all.length} webhooks are configured`, `${WEBHOOKS_MAX} webhooks at the most`);
  }
  return all;
}

function readWebhook(name: WebhookChannel, values: Environment, env: RawEnvironment, report: Report) {
  const { WEBHOOK_URL: url, WEBHOOK_SECRET: secrets, WEBHOOK_EVENTS: types, WEBHOOK_ORDER: order } = values;
  requireAllOrNone(SETTINGS, env, report);
  for (const option of OPTIONS) {
    if (readSetting(env, option) !== undefined && url === undefined)
      report.warn(`${option} has no effect: WEBHOOK_URL is not set.`);
  }
  const wanted = types === undefined ? [] : readTypes(types, report);
  const address = url === undefined ? undefined : readUrl("WEBHOOK_URL", url, report, { query: true });
  const filter = checkFilter(values.WEBHOOK_FILTER, report);
  const headers = readHeaders(values.WEBHOOK_HEADERS, report);
  if (address === undefined || secrets === undefined || types === undefined) return undefined;
  return {
    name,
    url: secret(address),
    /**
     * Signing secrets of the webhook, as `whsec_` and base64. During a rotation there are several, separated by spaces,
     * and each signs every request.
     */
    secrets: secret(checkSecrets(secrets, report)),
    /** Event types that the webhook receives, in the order of the event catalog; at least one. */
    types: wanted,
    /**
     * JMESPath expression that selects the events to post, checked by {@link compileFilter}. Undefined: all events of
     * the webhook's types are posted.
     */
    filter,
    /**
     * True if the webhook receives the events of a stream in order. Then each event waits until the earlier ones are
     * delivered or became dead letters.
     */
    isInOrder: order === "stream",
    /** Additional headers by name, besides those of Standard Webhooks. */
    headers,
  };
}

function checkFilter(filter: string | undefined, report: Report): string | undefined {
  try {
    if (filter !== undefined) compileFilter(filter);
  } catch (fault) {
    if (!(fault instanceof FilterRefused)) throw fault;
    report.fault("WEBHOOK_FILTER", fault.message, "a JMESPath expression such as data.data.domain == 'go.example'");
  }
  return filter;
}

/**
 * Names of headers that an operator may not set for a webhook, because the service sets them itself: those of the
 * signature, the content and the connection.
 */
const RESERVED_HEADERS =
  /^(?:webhook-.*|host|user-agent|content-.*|transfer-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect)$/;

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const HEADER_VALUE = /^[\x20-\x7e\t]+$/;

/**
 * Reads the headers that the operator adds. Faults repeat neither name nor value, because a mistake in the text may put
 * part of a secret into either.
 */
function readHeaders(text: string | undefined, report: Report): ReadonlyMap<string, Secret> {
  const headers = new Map<string, Secret>();
  const wanted = `Name: value, up to ${HEADERS_MAX} of them separated by commas or line breaks, without a comma in a value`;
  const fault = (problem: string): void => report.fault("WEBHOOK_HEADERS", problem, wanted);
  const entries = commaList(text?.replaceAll("\n", ","));
  if (entries.length > HEADERS_MAX) fault(`it has ${entries.length} headers`);
  if ((text ?? "").length > HEADERS_CHARS_MAX) fault(`it has more than ${HEADERS_CHARS_MAX} characters`);
  for (const [at, entry] of entries.entries()) {
    const [, name = "", value = ""] = /^([^:]*):(.*)$/.exec(entry) ?? [];
    const known = name.trim().toLowerCase();
    if (!HEADER_NAME.test(known) || !HEADER_VALUE.test(value.trim())) fault(`header ${at + 1} has no name or no value`);
    else if (RESERVED_HEADERS.test(known)) fault(`header ${at + 1} is one that the service sets itself`);
    else if (headers.has(known)) fault(`header ${at + 1} has the name of an earlier one`);
    else headers.set(known, secret(value.trim()));
  }
  return headers;
}

function checkSecrets(secrets: string, report: Report): string {
  const isWhole = secrets.split(/\s+/).every((one) => {
    const encoded = one.slice("whsec_".length);
    const bytes = Buffer.from(encoded, "base64");
    const isOfLength = bytes.length >= SECRET_BYTES_MIN && bytes.length <= SECRET_BYTES_MAX;
    return isOfLength && bytes.toString("base64") === encoded;
  });
  if (!isWhole) {
    const wanted = `whsec_ and ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} random bytes as base64`;
    report.fault("WEBHOOK_SECRET", "too short, too long or not base64", wanted);
  }
  return secrets;
}

function readTypes(text: string, report: Report): readonly EventType[] {
  const names = new Set(commaList(text));
  for (const name of names) {
    if (SUBSCRIBABLE.some((type) => type === name)) continue;
    const meant = findClosest(name, SUBSCRIBABLE);
    const wanted = meant === undefined ? `types of events such as ${SUBSCRIBABLE.slice(0, 3).join(", ")}` : meant;
    report.fault("WEBHOOK_EVENTS", `webhooks cannot carry ${quoteValue(name)}`, wanted);
  }
  if (names.size === 0) report.fault("WEBHOOK_EVENTS", "it names no type of event", "types separated by commas");
  return SUBSCRIBABLE.filter((type) => names.has(type));
}
