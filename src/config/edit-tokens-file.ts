import { createHash, randomBytes } from "node:crypto";
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { commaList, type RawEnvironment, readSetting, refuseShellPath } from "./environment.ts";
import { configurationError, createReport } from "./configuration-error.ts";
import { readTokenLines, readTokens, toTokenId } from "./parse-api-tokens.ts";

/**
 * Number of random bytes in a new API token: 256 bits cannot be guessed, so a plain hash of them is as safe as a slow
 * one.
 */
const TOKEN_BYTES = 32;

/** Beginning of every new API token, by which scanners for leaked secrets find it, and people recognise it. */
const PREFIX = "reachlog_";

/**
 * Creates an API token, and the entry that configures the token by its hash. `rights` are further parts of the entry.
 */
export function createToken(name: string, rights: Readonly<Record<string, string | undefined>>) {
  const token = `${PREFIX}${randomBytes(TOKEN_BYTES).toString("base64url")}`;
  const sha256 = createHash("sha256").update(token).digest("hex");
  const parts = Object.entries(rights).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`]));
  return { token, id: toTokenId(sha256), entry: [name, "sha256", sha256, ...parts].join(":") };
}

/** Result of removing an API token from the tokens file: the removed token, or why none was removed. */
export type Removal =
  | { readonly kind: "removed"; readonly name: string; readonly id: string }
  | { readonly kind: "unknown" | "not_in_file" | "ambiguous" | "only_one" };

/** Removes the API token whose id begins with `id` from the tokens file. Throws a ServiceError (configuration). */
export function removeToken(env: RawEnvironment, id: string): Removal {
  const file = resolveTokensFile(env);
  const { fixed, filed } = readAllTokens(env);
  const found = filed.filter(({ sha256 }) => sha256.startsWith(id));
  const [token] = found;
  if (file === undefined || token === undefined) {
    return { kind: fixed.some(({ sha256 }) => sha256.startsWith(id)) ? "not_in_file" : "unknown" };
  }
  if (new Set(found.map(({ sha256 }) => sha256)).size > 1) return { kind: "ambiguous" };
  // A service refuses to load a file without any token, so the last one is not removed.
  if (fixed.length === 0 && found.length === filed.length) return { kind: "only_one" };
  rewriteEntries(file, (line) => !matchesToken(line, token.sha256));
  return { kind: "removed", name: token.name, id: toTokenId(token.sha256) };
}

function matchesToken(line: string, sha256: string): boolean {
  const entry = line.trim();
  if (entry === "" || entry.startsWith("#")) return false;
  return readTokenLines(entry, [], createReport()).some((token) => token.sha256 === sha256);
}

/** File mode of the tokens file. Only its owner may read it, because it may hold tokens in plain text. */
const OWNER_ONLY = 0o600;
const OWNER_ENTERS = 0o700;

/** Returns the path of `API_TOKENS_FILE`, undefined if not set. Throws a ServiceError (configuration). */
export function resolveTokensFile(env: RawEnvironment): string | undefined {
  const file = readSetting(env, "API_TOKENS_FILE");
  if (file === undefined) return undefined;
  const report = createReport();
  refuseShellPath("API_TOKENS_FILE", file, report);
  if (report.faults.length > 0) throw configurationError(report.faults);
  return resolve(file);
}

/**
 * Appends an entry to the tokens file in one write, on a new line even if the last line has no line break. Creates a
 * missing folder.
 */
export function appendEntry(file: string, entry: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: OWNER_ENTERS });
  const isOpenEnded = existsSync(file) && !/(?:^|\n)$/.test(readFileSync(file, "utf8"));
  appendFileSync(file, `${isOpenEnded ? "\n" : ""}${entry}\n`, { mode: OWNER_ONLY });
}

/** Replaces the tokens file atomically by one with only the lines that `keeps` accepts. Its owner and mode stay. */
function rewriteEntries(file: string, keeps: (line: string) => boolean): void {
  const place = realpathSync(file);
  const draft = `${place}.${randomBytes(8).toString("hex")}`;
  const lines = readFileSync(place, "utf8").split("\n").filter(keeps);
  const { mode, uid, gid } = statSync(place);
  writeFileSync(draft, lines.join("\n"), { mode: mode & 0o777, flag: "wx" });
  // If root runs this command, the file must still belong to the service's user. Otherwise the service could not read
  // it, and would keep its former tokens.
  if (process.getuid?.() === 0) chownSync(draft, uid, gid);
  renameSync(draft, place);
}

/** Reads the API tokens of the environment and of the tokens file. Throws a ServiceError (configuration). */
export function readAllTokens(env: RawEnvironment) {
  const report = createReport();
  const raw = readSetting(env, "API_TOKENS");
  const file = resolveTokensFile(env);
  const fixed = commaList(raw).length === 0 ? [] : readTokens(raw, report);
  const filed =
    file === undefined || !existsSync(file) ? [] : readTokenLines(readFileSync(file, "utf8"), fixed, report);
  if (report.faults.length > 0) throw configurationError(report.faults);
  return { fixed, filed };
}
