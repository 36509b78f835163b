import { secret } from "../platform/secret.ts";
import { requireTogether, type RawEnvironment, type Settings, readSetting, requireAllOrNone } from "./environment.ts";
import type { Report } from "./configuration-error.ts";
import { type Environment, variables, type Variable } from "./schema.ts";
import { readUrl, parseHttpUrl } from "./check-urls-and-plain-http.ts";

/**
 * Reads the configuration of X; undefined without X_CLIENT_ID. Checks the URLs of X in either case, so that the
 * operator learns of a fault early.
 */
export function readX({ values, env, report }: Settings) {
  const apiUrl = readUrl("X_API_URL", values.X_API_URL, report);
  const authorizeUrl = readUrl("X_AUTHORIZE_URL", values.X_AUTHORIZE_URL, report);
  for (const name of ["X_CLIENT_SECRET", "X_APP_BEARER_TOKEN", "X_ACCOUNT", "X_ACCOUNT_OWNS_APP"] as const)
    requireTogether(name, "X_CLIENT_ID", env, report);
  if (values.X_CLIENT_ID === undefined) return undefined;
  return {
    clientId: values.X_CLIENT_ID,
    /** Client secret of the X app. Undefined for a public client. */
    clientSecret: values.X_CLIENT_SECRET === undefined ? undefined : secret(values.X_CLIENT_SECRET),
    /**
     * The X app's own token, with which the service opens X's stream of signals (notifications of new messages). If
     * undefined, the service finds messages only by reading the inbox.
     */
    appBearer: values.X_APP_BEARER_TOKEN === undefined ? undefined : secret(values.X_APP_BEARER_TOKEN),
    /** How client id and secret are encoded for HTTP Basic authentication: as they are, or form-encoded. */
    basicEncoding: values.X_BASIC_ENCODING,
    /** The only X handle that may authorize, in lower case, without @. */
    account: values.X_ACCOUNT?.replace(/^@/, "").toLowerCase(),
    /** True if the authorized account owns the developer app. X then charges less for data of that account. */
    accountOwnsApp: values.X_ACCOUNT_OWNS_APP,
    apiUrl,
    authorizeUrl,
  };
}

export function readMeta({ values, env, report }: Settings) {
  const apiUrl = readUrl("META_API_URL", values.META_API_URL, report);
  requireTogether("META_PIXEL_ID", "META_ACCESS_TOKEN", env, report);
  requireTogether("META_ACCESS_TOKEN", "META_PIXEL_ID", env, report);
  if (values.META_PIXEL_ID === undefined || values.META_ACCESS_TOKEN === undefined) {
    for (const name of ["META_TEST_EVENT_CODE", "META_LIMITED_DATA_USE"] as const)
      if (readSetting(env, name) !== undefined) report.warn(`${name} has no effect: META_PIXEL_ID is not set.`);
    return undefined;
  }
  return {
    pixelId: values.META_PIXEL_ID,
    accessToken: secret(values.META_ACCESS_TOKEN),
    testEventCode: values.META_TEST_EVENT_CODE,
    limitsDataUse: values.META_LIMITED_DATA_USE === "us",
    apiUrl,
  };
}

/** Reads the pixel and the token of an ads network. Undefined without both. */
export function readAds(
  { values, env, report }: Settings,
  pixel: "OPENAI_ADS_PIXEL_ID" | "SNAP_PIXEL_ID",
  token: "OPENAI_ADS_API_KEY" | "SNAP_ACCESS_TOKEN",
  url: "OPENAI_ADS_API_URL" | "SNAP_API_URL",
) {
  const apiUrl = readUrl(url, values[url], report);
  requireAllOrNone([pixel, token], env, report);
  const [pixelId, accessToken] = [values[pixel], values[token]];
  if (pixelId === undefined || accessToken === undefined) return undefined;
  return { pixelId, accessToken: secret(accessToken), apiUrl };
}

type ChatProvider = Environment["CHAT_PROVIDER"];

export function readChat({ values, env, report }: Settings) {
  const { CHAT_PROVIDER: provider, CHAT_WEBHOOK_URL: raw } = values;
  if (raw === undefined) {
    if (readSetting(env, "CHAT_PROVIDER") !== undefined) {
      report.warn("CHAT_PROVIDER has no effect: CHAT_WEBHOOK_URL is not set.");
    }
    return undefined;
  }
  // The addresses of all but Slack's webhooks may have a query: for two networks it holds the secret, and for Discord
  // it may name a thread.
  const webhookUrl = readUrl("CHAT_WEBHOOK_URL", raw, report, { query: provider !== "slack" });
  checkWebhook(provider, raw, report);
  return { provider, webhookUrl: secret(webhookUrl) };
}

const HOSTS: readonly (readonly [RegExp, ChatProvider])[] = [
  [/^hooks\.slack(?:-gov)?\.com$/, "slack"],
  [/^(?:ptb\.|canary\.)?discord(?:app)?\.com$/, "discord"],
  [/^chat\.googleapis\.com$/, "google_chat"],
  [/\.logic\.azure\.com$|\.api\.powerplatform\.com$/, "teams"],
];

/**
 * Matches hosts of the Office 365 connectors, which Microsoft turned off in 2026:
 * https://aka.ms/O365ConnectorDeprecation
 */
const RETIRED_HOST = /\.webhook\.office\.com$|^outlook\.office(?:365)?\.com$/;

/**
 * Matches the former hosts of Teams workflows, which stopped when Microsoft moved the workflows to other addresses in
 * 2025.
 */
const FORMER_HOST = /\.logic\.azure\.com$/;

interface Form {
  readonly path: RegExp;
  /** Query parameters of a webhook's address that the network needs to authenticate the sender. */
  readonly query: readonly string[];
  readonly wanted: string;
}

const FORMS: Readonly<Record<ChatProvider, Form>> = {
  // Addresses of Slack's workflows are on the same host. They are refused, because they answer `ok` but post nothing.
  slack: { path: /^\/(?!triggers\/|workflows\/)/, query: [], wanted: "https://hooks.slack.com/services/T…/B…/…" },
  discord: {
    path: /\/api(?:\/v\d+)?\/webhooks\/\d+\/[\w-]+$/,
    query: [],
    wanted: "https://discord.com/api/webhooks/ID/TOKEN, with ?thread_id=ID for a thread",
  },
  google_chat: {
    path: /\/v1\/spaces\/[^/]+\/messages$/,
    query: ["key", "token"],
    wanted: "https://chat.googleapis.com/v1/spaces/SPACE/messages?key=…&token=…",
  },
  teams: { path: /\/paths\/invoke$/, query: ["sig"], wanted: "the URL of the workflow's trigger, with its sig=…" },
};

/**
 * Reports a chat webhook whose address is that of another network than the configured one. Otherwise its requests would
 * fail as if the channel was dead.
 */
function checkWebhook(provider: ChatProvider, raw: string, report: Report): void {
  const url = parseHttpUrl(raw);
  if (url === undefined) return;
  const { path, query, wanted } = FORMS[provider];
  const owner = HOSTS.find(([host]) => host.test(url.hostname))?.[1];
  if (owner !== undefined && owner !== provider) {
    report.fault("CHAT_WEBHOOK_URL", `an address of ${owner}, but CHAT_PROVIDER is ${provider}`, wanted);
  } else if (RETIRED_HOST.test(url.hostname)) {
    report.fault("CHAT_WEBHOOK_URL", "an Office 365 connector, which Microsoft has turned off", FORMS.teams.wanted);
  } else if (!path.test(url.pathname) || query.some((name) => !url.searchParams.has(name))) {
    report.fault("CHAT_WEBHOOK_URL", `not the address of a ${provider} webhook`, wanted);
  } else if (FORMER_HOST.test(url.hostname)) {
    report.warn(
      "CHAT_WEBHOOK_URL: addresses of logic.azure.com stopped in 2025; copy the workflow's new one from its trigger.",
    );
  }
}

type MessagingProvider = Environment["MESSAGING_PROVIDER"];

export type MessagingConfig = NonNullable<ReturnType<typeof readMessaging>>;

const CREDENTIALS = {
  telegram: ["TELEGRAM_BOT_TOKEN", "TELEGRAM_CHAT_ID"],
  line: ["LINE_CHANNEL_ACCESS_TOKEN", "LINE_TO"],
  whatsapp: ["WHATSAPP_ACCESS_TOKEN", "WHATSAPP_PHONE_NUMBER_ID", "WHATSAPP_TO"],
} as const satisfies Record<MessagingProvider, readonly Variable[]>;

/**
 * Reads the configuration of the messaging network. Undefined without its credentials; even then its addresses are
 * checked, so that the operator learns of a fault early.
 */
export function readMessaging({ values, env, report }: Settings) {
  const provider = values.MESSAGING_PROVIDER;
  const apiUrls = {
    telegram: readUrl("TELEGRAM_API_URL", values.TELEGRAM_API_URL, report),
    line: readUrl("LINE_API_URL", values.LINE_API_URL, report),
    whatsapp: readUrl("WHATSAPP_API_URL", values.WHATSAPP_API_URL, report),
  };
  requireAllOrNone(CREDENTIALS[provider], env, report);
  requireAllOrNone(["WHATSAPP_APP_SECRET", "WHATSAPP_VERIFY_TOKEN"], env, report);
  warnOfOthers(provider, env, report);
  const config = { telegram: readTelegram, line: readLine, whatsapp: readWhatsapp }[provider](
    values,
    apiUrls[provider],
  );
  if (config === undefined && readSetting(env, "MESSAGING_PROVIDER") !== undefined) {
    report.warn(`MESSAGING_PROVIDER has no effect: ${CREDENTIALS[provider].join(" and ")} are not set.`);
  }
  return config;
}

function readTelegram(values: Environment, apiUrl: string) {
  const { TELEGRAM_BOT_TOKEN: token, TELEGRAM_CHAT_ID: chatId } = values;
  if (token === undefined || chatId === undefined) return undefined;
  return { provider: "telegram" as const, botToken: secret(token), chatId, apiUrl };
}

function readLine(values: Environment, apiUrl: string) {
  const { LINE_CHANNEL_ACCESS_TOKEN: token, LINE_TO: to } = values;
  if (token === undefined || to === undefined) return undefined;
  return { provider: "line" as const, accessToken: secret(token), to, apiUrl };
}

function readWhatsapp(values: Environment, apiUrl: string) {
  const { WHATSAPP_ACCESS_TOKEN: token, WHATSAPP_PHONE_NUMBER_ID: phoneNumberId, WHATSAPP_TO: to } = values;
  if (token === undefined || phoneNumberId === undefined || to === undefined) return undefined;
  const { WHATSAPP_APP_SECRET: appSecret, WHATSAPP_VERIFY_TOKEN: verifyToken } = values;
  /**
   * Secrets of the webhook by which Meta reports messages that it lost. Undefined if the service does not answer this
   * webhook.
   */
  const statuses =
    appSecret === undefined || verifyToken === undefined
      ? undefined
      : { appSecret: secret(appSecret), verifyToken: secret(verifyToken) };
  return { provider: "whatsapp" as const, accessToken: secret(token), phoneNumberId, to, apiUrl, statuses };
}

/**
 * Warns about settings of messaging providers that are not used. An operator who configures two would wait for the
 * messages of the second.
 */
function warnOfOthers(provider: MessagingProvider, env: RawEnvironment, report: Report): void {
  const isOthers = (name: string): boolean =>
    Object.keys(CREDENTIALS).some((other) => other !== provider && name.startsWith(`${other.toUpperCase()}_`));
  for (const name of [...variables.keys()].filter((key) => isOthers(key) && readSetting(env, key) !== undefined)) {
    report.warn(`${name} has no effect: MESSAGING_PROVIDER is ${provider}.`);
  }
}
