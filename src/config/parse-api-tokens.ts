import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { commaList } from "./environment.ts";
import { DAY_MS, toDay } from "../../projections/parse-log-times.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { Report } from "./configuration-error.ts";

/** Scopes that an API token can have, with their descriptions in the documentation. No scope includes another. */
export const TOKEN_SCOPES = {
  track: "records clicks; `links=` narrows it to some domains",
  notify: "sends notifications to the team chat, and messages",
  run: "starts, rehearses and stops runs",
  recipients: "imports and suppresses recipients, records consent, allows a retry",
  read: "reads the console, the metrics, and the log with personal data",
  admin: "retries dead letters, tests channels, verifies the log, erases data",
} as const;

export type TokenScope = keyof typeof TOKEN_SCOPES;

export const SCOPE_NAMES = Object.keys(TOKEN_SCOPES) as readonly TokenScope[];

/**
 * Identity of an API token. Two tokens may have the same name, so that one can replace the other without an
 * interruption.
 */
export interface TokenIdentity {
  readonly name: string;
  /** SHA-256 of the token in lower-case hex, in place of the token itself. */
  readonly sha256: string;
}

interface TokenRights {
  /** Scopes that the token grants; all if absent, because entries once had no scopes. */
  readonly scopes?: readonly TokenScope[];
  /** When the token expires, in ms since 1970. Absent: it never expires. */
  readonly expiresAt?: number;
  /** Domains, in lower case, for whose links the token may record clicks. Absent: all. */
  readonly links?: readonly string[];
}

/** A configured API token, without its text: its identity and its rights. */
export interface ApiToken extends TokenIdentity, TokenRights {}

/** An API token with the setting that configures it. */
export interface SourcedToken extends ApiToken {
  readonly source: "API_TOKENS" | "API_TOKENS_FILE";
}

/**
 * Adds to each API token the setting that it comes from. `configured`: the tokens when the configuration was read;
 * others were added to the tokens file since.
 */
export function withSource(
  tokens: readonly ApiToken[],
  configured: {
    readonly tokens: readonly ApiToken[];
    readonly tokensFile?: { readonly fixed: readonly ApiToken[] } | undefined;
  },
): readonly SourcedToken[] {
  const fixed = configured.tokensFile?.fixed ?? configured.tokens;
  const isFixed = ({ sha256 }: ApiToken) => fixed.some((one) => one.sha256 === sha256);
  return tokens.map((token) => ({ ...token, source: isFixed(token) ? "API_TOKENS" : "API_TOKENS_FILE" }));
}

export function hasScope({ scopes }: ApiToken, scope: TokenScope): boolean {
  return scopes === undefined || scopes.includes(scope);
}

/** Number of digits of a token's SHA-256 that serve as its id: enough to distinguish all tokens of a service. */
const ID_DIGITS = 12;

/** Returns the id of an API token, which names it without disclosing it. */
export function toTokenId(sha256: string): string {
  return sha256.slice(0, ID_DIGITS);
}

/**
 * Minimum length of an API token, in characters. Wrong tokens lock no caller out for good, so only the length prevents
 * guessing.
 */
const TOKEN_CHARS_MIN = 16;

/** Maximum length of an API token, in characters, so that it fits into a header line. */
const TOKEN_CHARS_MAX = 512;

/**
 * Maximum number of API tokens of a service. Each request with a token compares it with all of them; with this many,
 * that takes some tens of microseconds.
 */
const TOKENS_MAX = 500;

/**
 * Caller names, such as `reachlog`, that the service writes into the log's events itself. No API token may have one, or
 * events would not tell who caused them.
 */
const RESERVED: ReadonlySet<string> = new Set(["anonymous", "reachlog", "command-line"]);

const NAME_CHARS_MAX = 64;
const NAME = new RegExp(`^[A-Za-z0-9._-]{1,${NAME_CHARS_MAX}}$`);

/** Matches texts that a Bearer header can carry (RFC 6750, section 2.1). */
const B64_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

const SHA256_HEX = /^[0-9a-f]{64}$/i;

const WANTED = "name:token or name:sha256:hex with :scope=…, separated by commas";

/**
 * Matches the colon before a further part of a token's entry, such as `scopes=`. Neither a token nor the name of a part
 * contains it.
 */
const BEFORE_PART = /:(?=[a-z]+=)/;

/** Matches a moment of UTC, to the second, or a day of UTC. */
const MOMENT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ)?$/;

/** Matches a domain in the form in which clicks hold it: a host, and its port if it has one. */
const DOMAIN = /^[a-z0-9.-]{1,253}(?::\d{1,5})?$/;

/**
 * Maximum number of domains in `links=` of a token's entry, because each click that the token sends is compared with
 * all of them.
 */
export const DOMAINS_MAX = 20;

/** Reads the token entries of API_TOKENS. Faults name entries by their number, never by their text. */
export function readTokens(raw: string | undefined, report: Report): readonly ApiToken[] {
  const entries = commaList(raw).map((entry, index): Entry => [`entry ${index + 1}`, entry]);
  if (raw !== undefined && entries.length === 0) report.fault("API_TOKENS", "holds no token", WANTED);
  return collect("API_TOKENS", entries, [], report);
}

/**
 * Reads the token entries of API_TOKENS_FILE: one on each line, with comments after `#`. `others`: tokens from
 * elsewhere, which the file may not repeat.
 */
export function readTokenLines(text: string, others: readonly ApiToken[], report: Report): readonly ApiToken[] {
  const entries = text
    .split(/\r?\n/)
    .map((line, index): Entry => [`line ${index + 1}`, line.trim()])
    .filter(([, line]) => line !== "" && !line.startsWith("#"));
  const wanted = "a line of name:sha256:hex for each token (reachlog token new NAME --add)";
  if (entries.length === 0) report.fault("API_TOKENS_FILE", "holds no token", wanted);
  return collect("API_TOKENS_FILE", entries, others, report);
}

type Entry = readonly [where: string, entry: string];

function collect(variable: string, entries: readonly Entry[], others: readonly ApiToken[], report: Report) {
  const tokens: ApiToken[] = [];
  if (entries.length > TOKENS_MAX) report.fault(variable, `holds ${entries.length} tokens`, `at most ${TOKENS_MAX}`);
  for (const [where, entry] of entries.slice(0, TOKENS_MAX)) {
    const token = readToken(entry);
    if (typeof token === "string") {
      report.fault(variable, `${where}: ${token}`, WANTED);
    } else if ([...others, ...tokens].some(({ name, sha256 }) => sha256 === token.sha256 && name !== token.name)) {
      report.fault(variable, `${where} repeats the token of another name`, "a separate token for each name");
    } else if ([...others, ...tokens].some((one) => one.sha256 === token.sha256 && !isDeepStrictEqual(one, token))) {
      report.fault(
        variable,
        `${where} repeats the token of an earlier entry with other rights`,
        "one entry for each token",
      );
    } else {
      tokens.push(token);
    }
  }
  return tokens;
}

/** Time before a token expires at which the operator is warned, in ms: enough to give the caller a new one. */
export const EXPIRY_WARNING_MS = 14 * 24 * 3_600_000;

/** Returns a sentence for each API token that has expired or soon will. */
export function describeExpiries(tokens: readonly ApiToken[], now: number): readonly string[] {
  return tokens.flatMap(({ name, sha256, expiresAt = Infinity }) => {
    if (expiresAt > now + EXPIRY_WARNING_MS) return [];
    const when = `${expiresAt <= now ? "expired" : "expires"} on ${toLastDay(expiresAt)}`;
    return [`the token ${toTokenId(sha256)} of ${name} ${when}: create another one with reachlog token new ${name}`];
  });
}

/** Warns about API tokens whose entries name no scopes. Early entries had none, and such tokens may do everything. */
export function warnOfScopeless(tokens: readonly ApiToken[], report: Report): void {
  const names = new Set(tokens.filter(({ scopes }) => scopes === undefined).map(({ name }) => name));
  if (names.size === 0) return;
  const them = `the ${names.size === 1 ? "token" : "tokens"} of ${[...names].join(", ")}`;
  report.warn(`API_TOKENS: ${them} may do everything. Give each entry its scopes, such as :scope=track+read.`);
}

/** Returns why a token may not have this name; undefined if it may. */
export function describeNameFault(name: string): string | undefined {
  if (!NAME.test(name)) return `the name is not 1 to ${NAME_CHARS_MAX} letters, digits, dots, underscores or hyphens`;
  return RESERVED.has(name.toLowerCase())
    ? `the name ${name.toLowerCase()} is reserved in the log: choose another one`
    : undefined;
}

/** Reads one token entry. Returns the token, or a sentence on why the entry is refused. */
function readToken(entry: string): ApiToken | string {
  const [named = "", ...parts] = entry.split(BEFORE_PART);
  const colon = named.indexOf(":");
  if (colon === -1) return parts.length === 0 ? "has no name" : "has no token";
  const token = readNamed(named.slice(0, colon), named.slice(colon + 1));
  const rights = readRights(parts);
  return typeof token === "string" ? token : typeof rights === "string" ? rights : { ...token, ...rights };
}

function readNamed(name: string, value: string): ApiToken | string {
  const unfit = describeNameFault(name);
  if (unfit !== undefined) return unfit;
  if (/^sha256:/i.test(value)) {
    const hex = value.slice("sha256:".length);
    return SHA256_HEX.test(hex) ? { name, sha256: hex.toLowerCase() } : "the SHA-256 is not 64 hex digits";
  }
  if (value.length < TOKEN_CHARS_MIN) return `the token has fewer than ${TOKEN_CHARS_MIN} characters`;
  if (value.length > TOKEN_CHARS_MAX) return `the token has more than ${TOKEN_CHARS_MAX} characters`;
  if (!B64_TOKEN.test(value)) return "the token holds characters that a Bearer header cannot carry";
  return { name, sha256: hash("sha256", value) };
}

/**
 * Reads the parts that follow the token in its entry. Returns the rights that they grant, or a sentence on what is
 * wrong with them.
 */
function readRights(parts: readonly string[]): TokenRights | string {
  const given = new Map(parts.map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]));
  if (given.size < parts.length) return "repeats a part";
  if ([...given.keys()].some((key) => !["scope", "expires", "links"].includes(key)))
    return "has a part other than scope=, expires= and links=";
  const [scopes, links] = ["scope", "links"].map((key) => given.get(key)?.split("+"));
  const expires = given.get("expires");
  const expiresAt = expires === undefined ? undefined : parseTokenEnd(expires);
  if (scopes?.every(isScope) === false) return `a scope is none of ${SCOPE_NAMES.join(", ")}`;
  if (expires !== undefined && expiresAt === undefined)
    return "expires= is neither a day nor a time such as 2027-02-24T00:00:00Z";
  if (links !== undefined && (links.length > DOMAINS_MAX || !links.every(isDomain)))
    return `links= does not hold 1 to ${DOMAINS_MAX} domains, joined by +`;
  if (links !== undefined && !(scopes ?? []).includes("track")) return "links= narrows the scope track, which it lacks";
  return omitUndefined({ scopes, expiresAt, links: links?.map((link) => link.toLowerCase()) });
}

/**
 * Parses when a token expires, a day or a moment of UTC, into ms since 1970. A day means the end of that day. Undefined
 * if the text is neither.
 */
export function parseTokenEnd(text: string): number | undefined {
  const ms = MOMENT.test(text) ? Date.parse(text) : NaN;
  // Date.parse accepts February 30 and returns a day in March.
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(text.replace("Z", ""))) return undefined;
  return text.includes("T") ? ms : ms + DAY_MS;
}

/** Returns the last day of UTC on which a token is valid, even if only for a part of it. */
export function toLastDay(expiresAt: number): string {
  return toDay(expiresAt - 1);
}

export function isScope(text: string): text is TokenScope {
  return Object.hasOwn(TOKEN_SCOPES, text);
}

export function isDomain(text: string): boolean {
  return DOMAIN.test(text.toLowerCase());
}
