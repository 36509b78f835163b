import { createHash } from "node:crypto";
import { commaList } from "./environment.ts";
import type { Report } from "./faults.ts";

/** A caller of the API. Two tokens may share a name, so that one can be rotated without a gap. */
export interface ApiToken {
  readonly name: string;
  /** Lower-case hex of the token's SHA-256: the token itself is not kept. */
  readonly sha256: string;
}

/** A shorter token could be guessed within the rate limits of a patient attacker. */
const TOKEN_CHARS_MIN = 16;

/** Longest token that fits comfortably into a header line. */
const TOKEN_CHARS_MAX = 512;

const NAME = /^[A-Za-z0-9._-]{1,64}$/;

/** RFC 6750, section 2.1: the only characters a Bearer header can carry. */
const B64_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

const SHA256_HEX = /^[0-9a-f]{64}$/i;

const WANTED = "name:token or name:sha256:hex, separated by commas";

/** Entries are told by their number, never by their text. */
export function readTokens(raw: string | undefined, report: Report): ApiToken[] {
  const tokens: ApiToken[] = [];
  for (const [index, entry] of commaList(raw).entries()) {
    const token = readToken(entry);
    if (typeof token === "string") {
      report.fault("API_TOKENS", `entry ${index + 1}: ${token}`, WANTED);
    } else if (tokens.some(({ name, sha256 }) => sha256 === token.sha256 && name !== token.name)) {
      report.fault(
        "API_TOKENS",
        `entry ${index + 1} is the token of an earlier name`,
        "a token of its own for each name",
      );
    } else {
      tokens.push(token);
    }
  }
  return tokens;
}

/** The token, or what is wrong with it. */
function readToken(entry: string): ApiToken | string {
  const colon = entry.indexOf(":");
  if (colon === -1) return "has no name";
  const name = entry.slice(0, colon);
  const value = entry.slice(colon + 1);
  if (!NAME.test(name)) return "the name is not 1 to 64 letters, digits, dots, underscores or hyphens";
  if (/^sha256:/i.test(value)) return hashedToken(name, value.slice("sha256:".length));
  if (value.length < TOKEN_CHARS_MIN) return `the token has fewer than ${TOKEN_CHARS_MIN} characters`;
  if (value.length > TOKEN_CHARS_MAX) return `the token has more than ${TOKEN_CHARS_MAX} characters`;
  if (!B64_TOKEN.test(value)) return "the token holds characters that a Bearer header cannot carry";
  return { name, sha256: createHash("sha256").update(value).digest("hex") };
}

function hashedToken(name: string, hex: string): ApiToken | string {
  return SHA256_HEX.test(hex) ? { name, sha256: hex.toLowerCase() } : "the SHA-256 is not 64 hex digits";
}
