import { Type, type Static, type StringOptions, type TOptional, type TSchema, type TUnsafe } from "@sinclair/typebox";
import { EITHER } from "../platform/format-numbers-and-lists.ts";

/** Options of a setting's schema: how error messages describe the setting, and how it may be given. */
interface Wording {
  readonly description: string;
  /** True if an error message may repeat a faulty value, because the value is harmless. */
  readonly shown?: boolean;
  /**
   * True if the setting is a secret. A file may hold it instead, because child processes and crash reports can see the
   * environment.
   */
  readonly secret?: boolean;
}

/**
 * Maximum value of the daily limit. X refuses more than 500 messages a day of an account; this service promises never
 * to send more than 100.
 */
export const DAILY_LIMIT_MAX = 100;

/** Maximum length of a template's name, in characters. A longer one would fill the row of a table. */
export const TEMPLATE_NAME_CHARS_MAX = 64;

const X_HANDLE = "^@?[A-Za-z0-9_]{1,15}$";

/**
 * Pattern of a WhatsApp recipient's id, valid in one business portfolio or (`ENT.`) in linked ones:
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/business-scoped-user-ids/
 */
const BUSINESS_SCOPED_ID = "[A-Z]{2}\\.(?:ENT\\.)?[0-9A-Za-z]{1,128}";

/** Pattern of a query parameter's name for which no character has to be escaped. */
const PARAMETER = "[A-Za-z0-9_.-]{1,64}";

/** Pattern that matches every text. */
const ANY = "";

const text = (description: string, pattern = ANY, more: Omit<Wording, "description"> = {}) =>
  Type.Optional(Type.String({ description, pattern, ...more }));

const secretText = (description: string, pattern?: string) => text(description, pattern, { secret: true });

const shownText = (description: string, pattern: string) => text(description, pattern, { shown: true });

const textOr = (fallback: string, description: string, more: Omit<Wording, "description"> & StringOptions = {}) =>
  Type.String({ default: fallback, description, ...more });

const flag = (fallback: boolean) => Type.Boolean({ default: fallback, description: "true or false", shown: true });

const count = (minimum: number, maximum: number, fallback: number, unit: string) =>
  Type.Integer({ ...whole(minimum, maximum, unit), default: fallback });

const optionalCount = (minimum: number, maximum: number, unit: string) =>
  Type.Optional(Type.Integer(whole(minimum, maximum, unit)));

const choice = <const T extends string>(values: readonly T[], fallback: T): TUnsafe<T> =>
  Type.Unsafe<T>(Type.String({ ...describeChoice(values), default: fallback }));

const optionalChoice = <const T extends string>(values: readonly T[]): TOptional<TUnsafe<T>> =>
  Type.Optional(Type.Unsafe<T>(Type.String(describeChoice(values))));

function whole(minimum: number, maximum: number, unit: string) {
  return { minimum, maximum, description: `a whole number of ${unit} from ${minimum} to ${maximum}`, shown: true };
}

function describeChoice(values: readonly string[]): Wording & StringOptions {
  return { description: EITHER.format(values), pattern: `^(?:${values.join("|")})$`, shown: true };
}

/**
 * Schema of every environment variable that the service reads. If a pattern is not enough, the code that reads that
 * part of the configuration checks the value.
 */
export const environmentSchema = Type.Object({
  HOST: textOr("127.0.0.1", "an IP address or a host name", { pattern: "^[A-Za-z0-9.:_-]{1,253}$", shown: true }),
  PORT: count(0, 65_535, 3000, "a port (0: any free one)"),
  ALLOWED_HOSTS: text("host names, with or without a port, separated by commas"),
  PUBLIC_URL: text("an http(s) origin such as https://reach.example"),
  API_TOKENS: secretText("name:token or name:sha256:hex, separated by commas"),
  API_TOKENS_FILE: text("the path of a text file with name:sha256:hex lines"),
  AUTH_POLICY: optionalChoice(["spec", "strict"]),
  OPEN_ROUTES: text("paths, separated by commas"),
  PLAIN_HTTP_HOSTS: text("names without dots or private addresses, separated by commas"),
  TRUSTED_PROXIES: text("IP addresses or networks, separated by commas"),
  RATE_LIMIT_PER_MINUTE: count(1, 1_000_000, 600, "requests"),
  SHUTDOWN_SECONDS: count(1, 300, 10, "seconds"),

  DATABASE_URL: textOr("sqlite:./data/reachlog.sqlite", "sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE", {
    secret: true,
  }),
  KEYS_FILE: text("the path of a file"),
  ARCHIVE_FOLDER: text("the path of a folder, or s3://BUCKET/PREFIX"),
  ARCHIVE_AFTER_DAYS: optionalCount(1, 36_500, "days"),
  KEYS_DATABASE_URL: secretText("postgres://USER:PASSWORD@HOST/DATABASE"),
  REACHLOG_KEY: secretText("32 random bytes as 64 hex digits or as base64 (openssl rand -base64 32)"),
  REACHLOG_KEY_NEXT: secretText("the key that replaces REACHLOG_KEY, for reachlog key rotate"),
  REACHLOG_TOKEN: secretText("one of the service's API tokens", "^[\\x21-\\x7e]{1,512}$"),

  AWS_ACCESS_KEY_ID: text("the id of an access key of an S3-compatible store", "^[\\x21-\\x7e]{1,128}$"),
  AWS_SECRET_ACCESS_KEY: secretText("the secret of that access key", "^[\\x21-\\x7e]{1,512}$"),
  AWS_REGION: textOr("us-east-1", "a region such as eu-central-1", { pattern: "^[a-z0-9-]{1,64}$", shown: true }),
  AWS_ENDPOINT_URL: text("the base URL of an S3-compatible store"),

  X_CLIENT_ID: text("the client id of the X app", "^[A-Za-z0-9_:.-]{1,200}$"),
  X_CLIENT_SECRET: secretText("the client secret of the X app", "^[\\x21-\\x7e]{1,500}$"),
  X_APP_BEARER_TOKEN: secretText("the bearer token of the X app", "^[\\x21-\\x7e]{1,500}$"),
  X_BASIC_ENCODING: choice(["raw", "form"], "raw"),
  X_ACCOUNT: shownText("an X handle of 1 to 15 letters, digits and underscores", X_HANDLE),
  X_ACCOUNT_OWNS_APP: flag(false),
  X_API_URL: textOr("https://api.x.com", "a base URL"),
  X_AUTHORIZE_URL: textOr("https://x.com/i/oauth2/authorize", "a URL"),

  RECIPIENT_SOURCES: textOr("list", "sources separated by commas"),
  X_SEARCH_QUERY: text("a search query"),
  X_LIST_ID: shownText("the number of an X list", "^[0-9]{1,19}$"),
  MESSAGE_TEMPLATE: text("the text of the message"),
  MESSAGE_TEMPLATE_FILE: text("the path of a text file"),
  MESSAGE_TEMPLATE_NAME: shownText(
    `a name of 1 to ${TEMPLATE_NAME_CHARS_MAX} characters on one line`,
    `^[^\\u0000-\\u001f\\u007f-\\u009f]{1,${TEMPLATE_NAME_CHARS_MAX}}$`,
  ),
  REQUIRE_CONSENT: Type.Union([Type.Boolean(), Type.Literal("evidence")], {
    default: true,
    description: "true, false or evidence",
    shown: true,
  } satisfies Wording & { default: boolean }),
  STOP_WORDS: textOr("stop,stopall,unsubscribe,cancel,end,quit,optout,opt out,opt-out", "words separated by commas"),
  TRACKING_STOP_WORDS: textOr(
    "stop tracking,do not track,don't track",
    "words separated by commas that are not in STOP_WORDS, or none",
  ),
  DAILY_LIMIT: count(1, DAILY_LIMIT_MAX, DAILY_LIMIT_MAX, "direct messages a day"),
  CONTACT_GAP_DAYS: count(1, 3650, 30, "days between two messages to one recipient"),
  QUOTA_TIMEZONE: textOr("UTC", "an IANA time zone such as Europe/Berlin", { shown: true }),
  SEND_WINDOW: shownText("weekdays with hours, such as Mon-Fri 09:00-17:00, Sat 10:00-12:00", ANY),
  SEND_WINDOW_ZONE: choice(["quota", "recipient"], "quota"),
  SEND_WINDOW_CLOSED: choice(["end", "pause"], "end"),
  STOP_AFTER_FAILURES: shownText("a share from 1% to 100%", "^(?:[1-9]\\d?|100)%$"),
  RUN_MAX_MINUTES: count(1, 1440, 180, "minutes"),
  IN_DOUBT_SETTLE_SECONDS: count(0, 3600, 60, "seconds"),
  SEND_SPACING_SECONDS: optionalCount(0, 3600, "seconds"),

  META_PIXEL_ID: shownText("the number of a Meta pixel or dataset", "^[0-9]{1,20}$"),
  META_ACCESS_TOKEN: secretText("an access token without spaces", "^[\\x21-\\x7e]{1,1000}$"),
  META_TEST_EVENT_CODE: shownText("a code such as TEST12345", "^[A-Za-z0-9_-]{1,40}$"),
  META_LIMITED_DATA_USE: choice(["off", "us"], "off"),
  META_API_URL: textOr("https://graph.facebook.com", "a base URL"),
  OPENAI_ADS_PIXEL_ID: shownText("the id of an OpenAI Ads pixel", "^[A-Za-z0-9_-]{1,100}$"),
  OPENAI_ADS_API_KEY: secretText("a Conversions API key without spaces", "^[\\x21-\\x7e]{1,1000}$"),
  OPENAI_ADS_API_URL: textOr("https://bzr.openai.com", "a base URL"),
  SNAP_PIXEL_ID: shownText("the id of a Snap pixel", "^[A-Za-z0-9_-]{1,100}$"),
  SNAP_ACCESS_TOKEN: secretText("a Conversions API token without spaces", "^[\\x21-\\x7e]{1,2000}$"),
  SNAP_API_URL: textOr("https://tr.snapchat.com", "a base URL"),

  CHAT_PROVIDER: choice(["slack", "discord", "google_chat", "teams"], "slack"),
  CHAT_WEBHOOK_URL: secretText("the URL of an incoming webhook, or of a workflow"),
  CHAT_DIGEST_AFTER_SECONDS: count(1, 3600, 30, "seconds"),
  REPORT: choice(["off", "run"], "off"),
  REPORT_EXPECT: shownText("hours between two runs, such as 24h", "^[1-9][0-9]{0,3}h$"),

  MESSAGING_PROVIDER: choice(["telegram", "line", "whatsapp"], "telegram"),
  // The token becomes part of a URL's path, so it may hold no characters with a meaning there.
  TELEGRAM_BOT_TOKEN: secretText("a bot token such as 123456:ABC-def", "^[0-9]{1,20}:[A-Za-z0-9_-]{1,100}$"),
  TELEGRAM_CHAT_ID: shownText("a chat's number or @channelname", "^(?:-?[0-9]{1,20}|@[A-Za-z0-9_]{4,64})$"),
  TELEGRAM_API_URL: textOr("https://api.telegram.org", "a base URL"),
  LINE_CHANNEL_ACCESS_TOKEN: secretText("a channel access token without spaces", "^[\\x21-\\x7e]{1,1000}$"),
  LINE_TO: text("the id of a user, group or room: U, C or R and 32 hex digits", "^[UCR][0-9a-f]{32}$"),
  LINE_API_URL: textOr("https://api.line.me", "a base URL"),
  WHATSAPP_ACCESS_TOKEN: secretText("an access token without spaces", "^[\\x21-\\x7e]{1,1000}$"),
  WHATSAPP_PHONE_NUMBER_ID: shownText("the id of the sending number, not the number itself", "^[0-9]{1,20}$"),
  WHATSAPP_TO: text(
    "the recipient's number with its country code, digits only, or their business-scoped id such as BR.1234567890",
    `^(?:\\+?[0-9]{5,15}|${BUSINESS_SCOPED_ID})$`,
  ),
  WHATSAPP_APP_SECRET: secretText("the app secret of Meta's app, without spaces", "^[\\x21-\\x7e]{1,100}$"),
  WHATSAPP_VERIFY_TOKEN: secretText("a text without spaces that is hard to guess", "^[\\x21-\\x7e]{8,100}$"),
  WHATSAPP_API_URL: textOr("https://graph.facebook.com", "a base URL"),

  WEBHOOK_URL: secretText("the URL of a receiver of Standard Webhooks"),
  WEBHOOK_SECRET: secretText(
    "whsec_ and 24 to 64 random bytes as base64; several are separated by a space",
    "^whsec_[A-Za-z0-9+/]+={0,2}(?:\\s+whsec_[A-Za-z0-9+/]+={0,2})*$",
  ),
  WEBHOOK_EVENTS: text("types of events separated by commas"),
  WEBHOOK_FILTER: text("a JMESPath expression such as data.data.domain == 'go.example'"),
  WEBHOOK_ORDER: choice(["none", "stream"], "none"),
  WEBHOOK_HEADERS: secretText("Name: value, several separated by commas or line breaks"),

  LINK_BASE: shownText("an http(s) URL such as https://go.example, without a query", "^https?://[^?#\\s]{1,250}$"),
  PERSONAL_LINKS: choice(["off", "on"], "off"),
  REDIRECTS: choice(["off", "on"], "off"),
  REDIRECT_DURABILITY: choice(["before", "after"], "before"),
  ATTRIBUTION: choice(["last", "first"], "last"),
  ATTRIBUTION_DAYS: count(1, 365, 30, "days"),
  CLICK_PARAM: shownText("a parameter's name such as rl_click", `^${PARAMETER}$`),
  PASS_QUERY: shownText(
    "names of parameters such as utm_* or gclid, separated by commas",
    `^${PARAMETER}\\*?(?:\\s*,\\s*${PARAMETER}\\*?)*$`,
  ),
  BOT_CLICKS: choice(["dispatch", "record"], "dispatch"),
  AUDIT_READS: choice(["off", "on"], "off"),
  RETENTION_DAYS: optionalCount(1, 36_500, "days"),
  OTEL_EXPORTER_OTLP_ENDPOINT: text("an http(s) URL such as http://127.0.0.1:4318"),
  OTEL_TRACES_SAMPLER_ARG: textOr("1", "a share from 0 to 1", {
    pattern: "^(?:0(?:\\.\\d{1,9})?|1(?:\\.0{1,9})?)$",
    shown: true,
  }),
  TRACE_URL: shownText(
    "an http(s) URL with {id} for the trace's id, such as https://jaeger.example/trace/{id}",
    "^https?://[^\\s{}]{1,250}\\{id\\}[^\\s{}]{0,250}$",
  ),
  WITNESS_URL: text("the https URL of a witness, up to add-checkpoint"),
  WITNESS_PUBLIC_KEY: text("NAME+ID+KEY, as reachlog witness serve prints it"),
  LOG_LEVEL: choice(["debug", "info", "warn", "error"], "info"),
});

/** Environment after the check: numbers are parsed, defaults are filled in, and empty variables are absent. */
export type Environment = Static<typeof environmentSchema>;

export type Variable = keyof Environment;

export const variables: ReadonlyMap<string, TSchema & Partial<Wording>> = new Map(
  Object.entries(environmentSchema.properties),
);

/**
 * Maps a setting that names a file to the secret that the file holds. API_TOKENS_FILE is not in the map, because its
 * file has another form.
 */
export const secretFiles: ReadonlyMap<string, string> = new Map(
  [...variables]
    .map(([name, { secret }]) => [`${name}_FILE`, name, secret] as const)
    .flatMap(([file, name, secret]) => (secret === true && !variables.has(file) ? [[file, name] as const] : [])),
);

/** The names of all settings, except those of webhooks with a name. */
export const settingNames: ReadonlySet<string> = new Set([...variables.keys(), ...secretFiles.keys()]);
