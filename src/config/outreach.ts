import { parseTemplate, type Template } from "../outreach/message.ts";
import { TemplateError } from "../outreach/template-parser.ts";
import { commaList, shown } from "./environment.ts";
import type { Report } from "./faults.ts";
import type { Environment } from "./schema.ts";

export type RecipientSource = "list" | "followers";

export interface OutreachConfig {
  /** In the order in which they are merged, each once. */
  readonly sources: readonly RecipientSource[];
  readonly searchQuery: string | undefined;
  readonly listId: string | undefined;
  /** Undefined when neither a text nor a file was given: then there is nothing to send. */
  readonly template: Template | undefined;
  readonly requireConsent: boolean;
  /** Lower case. */
  readonly stopWords: readonly string[];
  readonly dailyLimit: number;
  readonly timezone: string;
  readonly runMaxMinutes: number;
  readonly inDoubtSettleSeconds: number;
  /** Undefined: paced by the network's rate-limit headers. */
  readonly sendSpacingSeconds: number | undefined;
}

/** Reads a text file. May throw. */
export type ReadFile = (path: string) => string;

const SUPPORTED_SOURCES: readonly string[] = ["list", "followers"] satisfies RecipientSource[];
const LATER_SOURCES: readonly string[] = ["inbound", "search", "list_members"];

/** Networks were seen to commit a message 300 ms late; below this many seconds a read may still miss one. */
const SETTLE_SECONDS_SAFE = 10;

export function readOutreach(values: Environment, readFile: ReadFile, report: Report): OutreachConfig {
  if (values.IN_DOUBT_SETTLE_SECONDS < SETTLE_SECONDS_SAFE) {
    report.warn(
      `IN_DOUBT_SETTLE_SECONDS below ${SETTLE_SECONDS_SAFE}: a message that X commits late may be taken for undelivered.`,
    );
  }
  for (const name of ["X_SEARCH_QUERY", "X_LIST_ID"] as const) {
    if (values[name] !== undefined) report.warn(`${name} is set, but this version has no source that uses it.`);
  }
  return {
    sources: readSources(values.RECIPIENT_SOURCES, report),
    searchQuery: values.X_SEARCH_QUERY,
    listId: values.X_LIST_ID,
    template: readTemplate(values, readFile, report),
    requireConsent: values.REQUIRE_CONSENT,
    stopWords: readStopWords(values.STOP_WORDS, report),
    dailyLimit: values.DAILY_LIMIT,
    timezone: readTimezone(values.QUOTA_TIMEZONE, report),
    runMaxMinutes: values.RUN_MAX_MINUTES,
    inDoubtSettleSeconds: values.IN_DOUBT_SETTLE_SECONDS,
    sendSpacingSeconds: values.SEND_SPACING_SECONDS,
  };
}

function readSources(raw: string, report: Report): RecipientSource[] {
  const names = [...new Set(commaList(raw).map((name) => name.toLowerCase()))];
  if (names.length === 0) report.fault("RECIPIENT_SOURCES", "names no source", SUPPORTED_SOURCES.join(", "));
  for (const name of names.filter((entry) => !SUPPORTED_SOURCES.includes(entry))) {
    const problem = LATER_SOURCES.includes(name) ? "is not supported yet by this version" : "is no source";
    report.fault("RECIPIENT_SOURCES", `${shown(name)} ${problem}`, `some of ${SUPPORTED_SOURCES.join(", ")}`);
  }
  return names.filter((name): name is RecipientSource => SUPPORTED_SOURCES.includes(name));
}

function readTemplate(values: Environment, readFile: ReadFile, report: Report): Template | undefined {
  const { MESSAGE_TEMPLATE: text, MESSAGE_TEMPLATE_FILE: file } = values;
  if (text !== undefined && file !== undefined) {
    report.fault("MESSAGE_TEMPLATE_FILE", "given beside MESSAGE_TEMPLATE", "one of the two");
  }
  if (text !== undefined) return parseOrReport("MESSAGE_TEMPLATE", text, report);
  if (file === undefined) {
    if (values.X_CLIENT_ID !== undefined)
      report.warn("Neither MESSAGE_TEMPLATE nor MESSAGE_TEMPLATE_FILE is set: no run can start.");
    return undefined;
  }
  const content = readOrReport(file, readFile, report);
  return content === undefined ? undefined : parseOrReport("MESSAGE_TEMPLATE_FILE", content, report);
}

function readOrReport(file: string, readFile: ReadFile, report: Report): string | undefined {
  try {
    return readFile(file);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    report.fault("MESSAGE_TEMPLATE_FILE", `${shown(file)} cannot be read${code}`, "the path of a readable text file");
    return undefined;
  }
}

function parseOrReport(variable: string, text: string, report: Report): Template | undefined {
  try {
    return parseTemplate(text);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    report.fault(variable, error.message, "text with placeholders such as {{name}} or {{name|there}}");
    return undefined;
  }
}

function readStopWords(raw: string, report: Report): string[] {
  const words = [...new Set(commaList(raw).map((word) => word.toLowerCase()))];
  // Without any word nobody could opt out, which X's rules ask for.
  if (words.length === 0) report.fault("STOP_WORDS", "holds no word", "words separated by commas");
  return words;
}

function readTimezone(raw: string, report: Report): string {
  try {
    // Offsets such as +02:00 pass Intl, but they have no summer time: a day boundary would drift by an hour.
    if (!/^[A-Za-z]/.test(raw)) throw new RangeError("not a name");
    return new Intl.DateTimeFormat("en", { timeZone: raw }).resolvedOptions().timeZone;
  } catch {
    report.fault("QUOTA_TIMEZONE", `${shown(raw)} is no known time zone`, "an IANA name such as Europe/Berlin");
    return raw;
  }
}
