import type { EventType } from "../../events/catalog.ts";
import { SUBSCRIBABLE } from "../../events/dispatches.ts";
import { secret } from "../platform/secret.ts";
import {
  requireAllOrNone,
  findClosest,
  commaList,
  readSetting,
  quoteValue,
  type RawEnvironment,
} from "./environment.ts";
import type { Report } from "./error.ts";
import type { Environment } from "./schema.ts";
import { readUrl } from "./urls.ts";

/** Bytes that Standard Webhooks allows a secret. */
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;

const SETTINGS = ["WEBHOOK_URL", "WEBHOOK_SECRET", "WEBHOOK_EVENTS"] as const;

export function readWebhook(values: Environment, env: RawEnvironment, report: Report) {
  const { WEBHOOK_URL: url, WEBHOOK_SECRET: secrets, WEBHOOK_EVENTS: types, WEBHOOK_ORDER: order } = values;
  requireAllOrNone(SETTINGS, env, report);
  if (readSetting(env, "WEBHOOK_ORDER") !== undefined && url === undefined) {
    report.warn("WEBHOOK_ORDER has no effect: WEBHOOK_URL is not set.");
  }
  const wanted = types === undefined ? [] : readTypes(types, report);
  const address = url === undefined ? undefined : readUrl("WEBHOOK_URL", url, report, { query: true });
  if (address === undefined || secrets === undefined || types === undefined) return undefined;
  return {
    url: secret(address),
    /** `whsec_` and base64. Several, separated by spaces, while one takes the other's place: each signs. */
    secrets: secret(checkSecrets(secrets, report)),
    /** In the order of the catalog, not empty. */
    types: wanted,
    /** An event waits while an earlier one of its stream is pending. */
    isInOrder: order === "stream",
  };
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
    report.fault("WEBHOOK_SECRET", "too short, too long or no base64", wanted);
  }
  return secrets;
}

function readTypes(text: string, report: Report): readonly EventType[] {
  const names = new Set(commaList(text));
  for (const name of names) {
    if (SUBSCRIBABLE.some((type) => type === name)) continue;
    const meant = findClosest(name, SUBSCRIBABLE);
    const wanted = meant === undefined ? `types of events such as ${SUBSCRIBABLE.slice(0, 3).join(", ")}` : meant;
    report.fault("WEBHOOK_EVENTS", `no webhook carries ${quoteValue(name)}`, wanted);
  }
  if (names.size === 0) report.fault("WEBHOOK_EVENTS", "it names no type of event", "types separated by commas");
  return SUBSCRIBABLE.filter((type) => names.has(type));
}
