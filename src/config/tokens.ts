import { createHash } from "node:crypto";
import { commaList } from "./environment.ts";
import type { Report } from "./error.ts";

/** A caller of the API. Two tokens may share a name, so that one can be rotated without a gap. */
export interface ApiToken {
  readonly name: string;
  /** Lower-case hex of the token's SHA-256: the token itself is not kept. */
  readonly sha256: string;
}

/** Wrong tokens never lock a caller out, so only the length protects against guesses. */
const TOKEN_CHARS_MIN = 16;

/** Longest token that fits comfortably into a header line. */
const TOKEN_CHARS_MAX = 512;

/** Each request with a token compares it with all of them: this many take some tens of microseconds. */
const TOKENS_MAX = 500;

/** Callers that the service records itself: a token of such a name would be ambiguous. */
const RESERVED: ReadonlySet<string> = new Set(["anonymous", "reachlog", "command-line"]);

const NAME_CHARS_MAX = 64;
const NAME = new RegExp(`^[A-Za-z0-9._-]{1,${NAME_CHARS_MAX}}$`);

/** RFC 6750, section 2.1: the only characters a Bearer header can carry. */
const B64_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

const SHA256_HEX = /^[0-9a-f]{64}$/i;

const WANTED = "name:token or name:sha256:hex, separated by commas";

/** Faults name entries by their number, never by their text. */
export function readTokens(raw: string | undefined, report: Report): readonly ApiToken[] {
  const entries = commaList(raw).map((entry, index): Entry => [`entry ${index + 1}`, entry]);
  if (raw !== undefined && entries.length === 0) report.fault("API_TOKENS", "holds no token", WANTED);
  return collect("API_TOKENS", entries, [], report);
}

/** The same for a file: one entry a line, `#` begins a comment. `others`: tokens that are already known. */
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

function collect(
  variable: string,
  entries: readonly Entry[],
  others: readonly ApiToken[],
  report: Report,
): readonly ApiToken[] {
  const tokens: ApiToken[] = [];
  if (entries.length > TOKENS_MAX) report.fault(variable, `holds ${entries.length} tokens`, `at most ${TOKENS_MAX}`);
  for (const [where, entry] of entries.slice(0, TOKENS_MAX)) {
    const token = readToken(entry);
    if (typeof token === "string") {
      report.fault(variable, `${where}: ${token}`, WANTED);
    } else if ([...others, ...tokens].some(({ name, sha256 }) => sha256 === token.sha256 && name !== token.name)) {
      report.fault(variable, `${where} is the token of an earlier name`, "a token of its own for each name");
    } else {
      tokens.push(token);
    }
  }
  return tokens;
}

/** Why a caller's name is refused; undefined if it is accepted. */
export function describeNameFault(name: string): string | undefined {
  if (!NAME.test(name)) return `the name is not 1 to ${NAME_CHARS_MAX} letters, digits, dots, underscores or hyphens`;
  return RESERVED.has(name.toLowerCase())
    ? `the name ${name.toLowerCase()} is reserved in the log: choose another one`
    : undefined;
}

/** The token, or a sentence on why it is refused. */
function readToken(entry: string): ApiToken | string {
  const colon = entry.indexOf(":");
  if (colon === -1) return "has no name";
  const name = entry.slice(0, colon);
  const value = entry.slice(colon + 1);
  const unfit = describeNameFault(name);
  if (unfit !== undefined) return unfit;
  if (/^sha256:/i.test(value)) return hashedToken(name, value.slice("sha256:".length));
  if (value.length < TOKEN_CHARS_MIN) return `the token has fewer than ${TOKEN_CHARS_MIN} characters`;
  if (value.length > TOKEN_CHARS_MAX) return `the token has more than ${TOKEN_CHARS_MAX} characters`;
  if (!B64_TOKEN.test(value)) return "the token holds characters that a Bearer header cannot carry";
  return { name, sha256: createHash("sha256").update(value).digest("hex") };
}

function hashedToken(name: string, hex: string): ApiToken | string {
  return SHA256_HEX.test(hex) ? { name, sha256: hex.toLowerCase() } : "the SHA-256 is not 64 hex digits";
}
