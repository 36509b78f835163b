import { secret } from "../platform/secret.ts";
import { requireTogether, type RawEnvironment } from "./environment.ts";
import type { Report } from "./error.ts";
import type { Environment } from "./schema.ts";
import { readUrl } from "./urls.ts";

/** Addresses are checked even when nothing uses them yet: a fault found early is cheaper. */
export function readX(values: Environment, env: RawEnvironment, report: Report) {
  const apiUrl = readUrl("X_API_URL", values.X_API_URL, report);
  const authorizeUrl = readUrl("X_AUTHORIZE_URL", values.X_AUTHORIZE_URL, report);
  for (const name of ["X_CLIENT_SECRET", "X_ACCOUNT", "X_ACCOUNT_OWNS_APP"] as const)
    requireTogether(name, "X_CLIENT_ID", env, report);
  if (values.X_CLIENT_ID === undefined) return undefined;
  return {
    clientId: values.X_CLIENT_ID,
    /** Undefined for a public client. */
    clientSecret: values.X_CLIENT_SECRET === undefined ? undefined : secret(values.X_CLIENT_SECRET),
    /** How id and secret stand in HTTP Basic: as they are, or form-encoded. */
    basicEncoding: values.X_BASIC_ENCODING,
    /** The only handle that may authorize, lower case, without @. */
    account: values.X_ACCOUNT?.replace(/^@/, "").toLowerCase(),
    /** Whether the authorized account owns the developer app: X charges less for what is its own then. */
    accountOwnsApp: values.X_ACCOUNT_OWNS_APP,
    apiUrl,
    authorizeUrl,
  };
}

export function readMeta(values: Environment, env: RawEnvironment, report: Report) {
  const apiUrl = readUrl("META_API_URL", values.META_API_URL, report);
  requireTogether("META_PIXEL_ID", "META_ACCESS_TOKEN", env, report);
  requireTogether("META_ACCESS_TOKEN", "META_PIXEL_ID", env, report);
  if (values.META_PIXEL_ID === undefined || values.META_ACCESS_TOKEN === undefined) {
    if (values.META_TEST_EVENT_CODE !== undefined)
      report.warn("META_TEST_EVENT_CODE has no effect: META_PIXEL_ID is not set.");
    return undefined;
  }
  return {
    pixelId: values.META_PIXEL_ID,
    accessToken: secret(values.META_ACCESS_TOKEN),
    testEventCode: values.META_TEST_EVENT_CODE,
    apiUrl,
  };
}
