import { hash } from "node:crypto";
import { createReport } from "../../config/error.ts";
import type { HttpConfig } from "../../config/http.ts";
import { readTokenLines } from "../../config/tokens.ts";
import type { Authentication } from "./bearer-tokens.ts";
import { repeatUntilDisposed } from "../../platform/signals.ts";
import type { PartDeps } from "../../log/event-log.ts";

/** `fixed` are the tokens that are not in the file, `tokens` those in force at the start. */
export interface TokensFileDeps
  extends Pick<PartDeps, "sleep" | "logger">, Pick<HttpConfig, "tokens">, NonNullable<HttpConfig["tokensFile"]> {
  readonly authentication: Authentication;
  readonly read: (path: string) => Promise<string>;
}

/**
 * How often the file is read. A change counts once two readings agree, because an editor may write in pieces. The bytes
 * are compared, because the file's time proves nothing if a whole volume is exchanged.
 */
const READ_EVERY_MS = 1_000;

/**
 * Keeps the callers' tokens as the file has them. A missing, empty or faulty file changes nothing, so that a slip locks
 * no caller out; a log line reports it, without the file's content.
 */
export function followTokensFile(deps: TokensFileDeps): AsyncDisposable {
  const { fixed, authentication, logger } = deps;
  let inForce = deps.tokens;
  let seen: string | undefined;
  let judged: string | undefined;
  /** Puts the file's tokens in force if they are valid and differ. */
  const judge = (text: string | undefined): void => {
    const report = createReport();
    const tokens = text === undefined ? [] : [...fixed, ...readTokenLines(text, fixed, report)];
    const fault = text === undefined ? "it cannot be read" : report.faults[0]?.problem;
    if (fault !== undefined)
      return logger.error("API_TOKENS_FILE was not loaded, and the former tokens stay valid", { error: fault });
    if (JSON.stringify(tokens) === JSON.stringify(inForce)) return;
    inForce = tokens;
    authentication.replace(tokens);
    logger.info("API_TOKENS_FILE was loaded", { callers: tokens.map(({ name }) => name).join(" ") });
  };
  return repeatUntilDisposed(deps.sleep, READ_EVERY_MS, async () => {
    const text = await deps.read(deps.path).catch(() => undefined);
    const digest = text === undefined ? "unreadable" : hash("sha256", text);
    const isSettled = digest === seen;
    seen = digest;
    if (!isSettled || digest === judged) return;
    judged = digest;
    judge(text);
  });
}
