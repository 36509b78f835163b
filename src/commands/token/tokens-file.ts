import { randomBytes } from "node:crypto";
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
import { commaList, given } from "../../config/environment.ts";
import { configurationError, createReport } from "../../config/error.ts";
import { readTokenLines, readTokens, type ApiToken } from "../../config/tokens.ts";
import type { Terminal } from "../command.ts";

/** Tokens given in the clear are as good as what they protect. */
const OWNER_ONLY = 0o600;
const OWNER_ENTERS = 0o700;

export function tokensFileOf({ env }: Terminal): string | undefined {
  const file = given(env, "API_TOKENS_FILE");
  return file === undefined ? undefined : resolve(file);
}

/** In one piece, and behind a line that an editor left without an end. The folder is made where it is missing. */
export function appendEntry(file: string, entry: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: OWNER_ENTERS });
  const isOpenEnded = existsSync(file) && !/(?:^|\n)$/.test(readFileSync(file, "utf8"));
  appendFileSync(file, `${isOpenEnded ? "\n" : ""}${entry}\n`, { mode: OWNER_ONLY });
}

/** Keeps the lines that `keeps` wants; readers see the former file or the new one, which has the same owner. */
export function rewriteEntries(file: string, keeps: (line: string) => boolean): void {
  const place = realpathSync(file);
  const draft = `${place}.${randomBytes(8).toString("hex")}`;
  const lines = readFileSync(place, "utf8").split("\n").filter(keeps);
  const { mode, uid, gid } = statSync(place);
  writeFileSync(draft, lines.join("\n"), { mode: mode & 0o777, flag: "wx" });
  // Root may do this for a service of another user, which could not read root's file, and would keep the former tokens.
  if (process.getuid?.() === 0) chownSync(draft, uid, gid);
  renameSync(draft, place);
}

/** The tokens of the environment and of the file. Throws a ServiceError (configuration). */
export function tokensOf(terminal: Terminal): { readonly fixed: ApiToken[]; readonly filed: ApiToken[] } {
  const report = createReport();
  const raw = given(terminal.env, "API_TOKENS");
  const file = tokensFileOf(terminal);
  const fixed = commaList(raw).length === 0 ? [] : readTokens(raw, report);
  const filed =
    file === undefined || !existsSync(file) ? [] : readTokenLines(readFileSync(file, "utf8"), fixed, report);
  if (report.faults.length > 0) throw configurationError(report.faults);
  return { fixed, filed };
}
