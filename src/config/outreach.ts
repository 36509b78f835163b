import { basename, extname } from "node:path";
import { recipientSource, type RecipientSource } from "../../events/outreach.ts";
import { warnOfSlips } from "../template/warn-of-likely-mistakes.ts";
import { cleanValue, shortened } from "../template/normalize-field.ts";
import type { LinkBase } from "../template/short-link.ts";
import { linksOptOut, parseTemplate, type Template } from "../template/template.ts";
import { TemplateError } from "../template/parse-parts.ts";
import { parseTimezone } from "../platform/parse-timezone.ts";
import { commaList, LOST_CHARACTER, quoteValue, readNamedFile, readSetting, type Settings } from "./environment.ts";
import type { Report } from "./configuration-error.ts";
import { TEMPLATE_NAME_CHARS_MAX, type Environment } from "./schema.ts";
import { parseOpenHours, type SendWindow } from "./send-window.ts";
import { isLoopback, parseHttpUrl } from "./check-urls-and-plain-http.ts";

export type OutreachConfig = ReturnType<typeof readOutreach>;

const SOURCES = recipientSource.anyOf.map((source) => source.const);

/** The setting that tells a source what to read, for each source that needs one. */
const READS = { search: "X_SEARCH_QUERY", list_members: "X_LIST_ID" } as const;

/** Sources that do not show that a recipient consented. An import or a message of the recipient may still show it. */
const WITHOUT_CONSENT: readonly RecipientSource[] = ["followers", "search", "list_members"];

/**
 * Number of seconds between an uncertain send and the lookup that settles it, below which the operator is warned.
 * Networks were seen to show a message 300 ms late, and an earlier lookup would miss it.
 */
const SETTLE_SECONDS_SAFE = 10;

/**
 * Reads the settings of short links: the URL they begin with, if this service redirects them, and if recipients get
 * personal ones. Without LINK_BASE, they are below `publicUrl`, the service's own URL.
 */
export function readLinks(from: Settings, publicUrl: string) {
  const { values, env, report } = from;
  const redirects = values.REDIRECTS === "on" ? values.REDIRECT_DURABILITY : undefined;
  const isPersonal = values.PERSONAL_LINKS === "on";
  // Only this service can redirect personal links, because another shortener does not know their codes.
  if (isPersonal && redirects === undefined)
    report.fault("PERSONAL_LINKS", "is on, but REDIRECTS is off", "REDIRECTS=on");
  for (const name of ["CLICK_PARAM", "PASS_QUERY"] as const) {
    if (redirects === undefined && readSetting(env, name) !== undefined)
      report.warn(`${name} has no effect: REDIRECTS is off.`);
  }
  return {
    /**
     * The URL that short links begin with, without a slash at the end. Undefined if templates can have no short links.
     */
    base: readLinkBase(from, publicUrl),
    /**
     * Says if a click is stored durably `before` or `after` its redirect is answered. Undefined if another shortener
     * answers short links.
     */
    redirects,
    /** True if recipients who granted tracking get personal links. */
    isPersonal,
    /** Query parameter that a redirect adds to the target, with the click's id. If undefined, it adds none. */
    clickParam: values.CLICK_PARAM,
    /**
     * Names of query parameters that a redirect passes on to the target. One that ends with `*` stands for all names
     * that begin so.
     */
    passQuery: commaList(values.PASS_QUERY),
  };
}

function readLinkBase({ values, report }: Settings, publicUrl: string): LinkBase | undefined {
  const { LINK_BASE, REDIRECTS, PORT } = values;
  if (LINK_BASE !== undefined) {
    const url = parseHttpUrl(LINK_BASE);
    // The service finds a click's link by host and path in lower case. It would not find links below a LINK_BASE whose
    // path has capital letters.
    const isPlain = url !== undefined && url.username === "" && url.pathname === url.pathname.toLowerCase();
    if (isPlain) return url.href.replace(/\/+$/, "");
    report.fault("LINK_BASE", "not a plain http(s) URL", "http(s)://host, also with a path in lower case");
  }
  if (LINK_BASE !== undefined || REDIRECTS === "off") return undefined;
  if (publicUrl.endsWith(":0") && PORT === 0) {
    report.fault("LINK_BASE", "missing, and with PORT=0 no link can name this service", "an http(s) URL");
  }
  return `${publicUrl}${REDIRECT_PATH}`;
}

/** The path under which the service answers short links. */
export const REDIRECT_PATH = "/l";

/** The path under which recipients find their pages to opt out. */
export const OPT_OUT_PATH = "/o";

/** Reads the settings of outreach. Messages contain links to opt-out pages only if the operator has set PUBLIC_URL. */
export function readOutreach(from: Settings, linkBase: LinkBase | undefined, publicUrl: string) {
  const { values, report } = from;
  const optOutBase = values.PUBLIC_URL === undefined ? undefined : `${publicUrl}${OPT_OUT_PATH}`;
  if (values.IN_DOUBT_SETTLE_SECONDS < SETTLE_SECONDS_SAFE) {
    const risk = "a message that X commits late may count as not delivered";
    report.warn(`IN_DOUBT_SETTLE_SECONDS below ${SETTLE_SECONDS_SAFE}: ${risk}.`);
  }
  return {
    /** Sources of recipients, each once, in the order in which a run reads them. */
    sources: readSources(values, report),
    searchQuery: values.X_SEARCH_QUERY,
    listId: values.X_LIST_ID,
    /** The message template. Undefined if neither a text nor a file was given, so that there is nothing to send. */
    template: readTemplate(from, linkBase, optOutBase),
    /** URL that the addresses of pages to opt out begin with. Undefined if templates cannot link them. */
    optOutBase,
    /** The consent that a message needs. `evidence`: a consent counts only with its date and its source. */
    requireConsent: values.REQUIRE_CONSENT,
    /** Words of a reply that opt the recipient out, in lower case. */
    stopWords: readStopWords(values.STOP_WORDS, report),
    /** Words of a reply that revoke only the consent to tracking, in lower case. */
    trackingStopWords: readTrackingStopWords(values, report),
    dailyLimit: values.DAILY_LIMIT,
    /** Minimum number of days between two messages to one recipient, over all campaigns. */
    gapDays: values.CONTACT_GAP_DAYS,
    timezone: readTimezone(values.QUOTA_TIMEZONE, report),
    /** When messages may go out. Undefined if they always may. */
    window: readWindow(values, report),
    /** Share of failed messages, from 0 to 1, at which a run ends. Undefined if failures never end a run. */
    stopAfterFailures:
      values.STOP_AFTER_FAILURES === undefined ? undefined : Number.parseInt(values.STOP_AFTER_FAILURES, 10) / 100,
    runMaxMinutes: values.RUN_MAX_MINUTES,
    inDoubtSettleSeconds: values.IN_DOUBT_SETTLE_SECONDS,
    /** Seconds between two messages. Undefined if the network's rate-limit headers set the pace. */
    sendSpacingSeconds: values.SEND_SPACING_SECONDS,
    /**
     * Reports to the team chat. `isAfterRun`: true if each run ends with one. `expectedHours`: hours after which a
     * missing run is reported; undefined if none is expected.
     */
    report: {
      isAfterRun: values.REPORT === "run",
      expectedHours: values.REPORT_EXPECT === undefined ? undefined : Number.parseInt(values.REPORT_EXPECT, 10),
    },
  };
}

function readSources(values: Environment, report: Report): RecipientSource[] {
  const names = [...new Set(commaList(values.RECIPIENT_SOURCES).map((name) => name.toLowerCase()))];
  const known = `some of ${SOURCES.join(", ")}`;
  if (names.length === 0) report.fault("RECIPIENT_SOURCES", "names no source", known);
  for (const name of names.filter((entry) => !isSource(entry))) {
    report.fault("RECIPIENT_SOURCES", `${quoteValue(name)} is no source`, known);
  }
  const sources = names.filter(isSource);
  for (const [source, setting] of Object.entries(READS) as [keyof typeof READS, "X_SEARCH_QUERY" | "X_LIST_ID"][]) {
    const isUsed = sources.includes(source);
    if (isUsed && values[setting] === undefined)
      report.fault(setting, `is missing for the source ${source}`, "a value");
    if (!isUsed && values[setting] !== undefined) {
      report.warn(`${setting} is set, but RECIPIENT_SOURCES does not name ${source}.`);
    }
  }
  const unasked = sources.filter((source) => WITHOUT_CONSENT.includes(source));
  if (values.REQUIRE_CONSENT && unasked.length > 0) {
    report.warn(
      `RECIPIENT_SOURCES names ${unasked.join(", ")}: with REQUIRE_CONSENT each of these people is read, which costs money, and skipped, unless an import or a message from them shows their consent.`,
    );
  }
  return sources;
}

function isSource(name: string): name is RecipientSource {
  return (SOURCES as readonly string[]).includes(name);
}

function readTemplate(
  from: Settings,
  linkBase: LinkBase | undefined,
  optOutBase: LinkBase | undefined,
): Template | undefined {
  const { values, report } = from;
  const { MESSAGE_TEMPLATE: text, MESSAGE_TEMPLATE_FILE: file, MESSAGE_TEMPLATE_NAME: name } = values;
  if (text !== undefined && file !== undefined) {
    report.fault("MESSAGE_TEMPLATE_FILE", "set together with MESSAGE_TEMPLATE", "one of the two");
  }
  if (text === undefined && file === undefined && values.X_CLIENT_ID !== undefined)
    report.warn("Neither MESSAGE_TEMPLATE nor MESSAGE_TEMPLATE_FILE is set: no run can start.");
  const source = text === undefined ? "MESSAGE_TEMPLATE_FILE" : "MESSAGE_TEMPLATE";
  const content = text ?? (file && readNamedFile(from, source, file, "the path of a readable text file"));
  if (content === undefined) return undefined;
  const fileName = text === undefined ? file && nameFile(file) : undefined;
  if (text === undefined && content.includes(LOST_CHARACTER))
    report.fault(source, "holds U+FFFD, the mark of a character that was lost", "the file saved in UTF-8");
  for (const warning of warnOfSlips(content)) report.warn(`${source}: ${warning}.`);
  try {
    const template = parseTemplate(content, linkBase, name ?? fileName, optOutBase);
    const isOwn = optOutBase !== undefined && isLoopback(parseHttpUrl(optOutBase)?.hostname ?? "");
    if (isOwn && template.variants.some(linksOptOut))
      report.warn(`${source}: {{optout}} leads to PUBLIC_URL, which only this machine can open.`);
    return template;
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    report.fault(source, error.message, "text with placeholders such as {{name}} or {{name|there}}");
    return undefined;
  }
}

/** Returns the name of a template that has no configured name: the name of its file, without the ending. */
function nameFile(path: string): string | undefined {
  const name = cleanValue(basename(path, extname(path)));
  return name === undefined ? undefined : shortened(name, TEMPLATE_NAME_CHARS_MAX - 1);
}

function readStopWords(raw: string, report: Report): string[] {
  const words = splitWords(raw);
  // Without any stop word recipients could not opt out by a reply, which X's rules demand.
  if (words.length === 0) report.fault("STOP_WORDS", "holds no word", "words separated by commas");
  return words;
}

/** Value of TRACKING_STOP_WORDS with which no reply revokes tracking. */
const NO_WORDS = "none";

function readTrackingStopWords({ TRACKING_STOP_WORDS: raw, STOP_WORDS }: Environment, report: Report): string[] {
  if (raw.toLowerCase() === NO_WORDS) return [];
  const words = splitWords(raw);
  const both = words.find((word) => splitWords(STOP_WORDS).includes(word));
  if (both === undefined) return words;
  // A reply with a word of both lists would count only as a wish against tracking, and the opt-out would be missed.
  report.fault(
    "TRACKING_STOP_WORDS",
    `${quoteValue(both)} is in STOP_WORDS too`,
    "other words than those of STOP_WORDS",
  );
  return [];
}

function splitWords(raw: string): string[] {
  return [...new Set(commaList(raw).map((word) => word.toLowerCase()))];
}

function readTimezone(raw: string, report: Report): string {
  const timezone = parseTimezone(raw);
  if (timezone !== undefined) return timezone;
  report.fault("QUOTA_TIMEZONE", `${quoteValue(raw)} is no known time zone`, "an IANA name such as Europe/Berlin");
  return raw;
}

function readWindow(values: Environment, report: Report): SendWindow | undefined {
  const { SEND_WINDOW: text, SEND_WINDOW_ZONE: zone, SEND_WINDOW_CLOSED: whenClosed } = values;
  if (text === undefined) return undefined;
  const entries = commaList(text).map((entry) => ({ entry, hours: parseOpenHours(entry) }));
  const wanted = "weekdays with hours, such as Mon-Fri 09:00-17:00, Sat 10:00-12:00";
  if (entries.length === 0) report.fault("SEND_WINDOW", "names no hours", wanted);
  for (const { entry, hours } of entries) {
    if (hours === undefined)
      report.fault("SEND_WINDOW", `${quoteValue(entry)} does not name weekdays and hours`, wanted);
  }
  return { text, hours: entries.flatMap(({ hours = [] }) => hours), zone, whenClosed };
}
