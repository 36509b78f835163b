import { hash } from "node:crypto";
import { createReport } from "../../config/configuration-error.ts";
import { readTokenLines, type ApiToken } from "../../config/parse-api-tokens.ts";
import type { Authentication } from "./bearer-tokens.ts";
import { repeatUntilDisposed } from "../../platform/signals.ts";
import type { LogContext } from "../../log/event-log.ts";

/** The file that configures API tokens, which can change while the service runs. */
interface TokensFile {
  readonly path: string;
  /** API tokens that are configured outside the file. */
  readonly fixed: readonly ApiToken[];
  /** API tokens that the file held when the service started. */
  readonly tokens: readonly ApiToken[];
  readonly authentication: Authentication;
  readonly read: (path: string) => Promise<string>;
}

/**
 * Time between two reads of the tokens file, in ms. A change counts once two reads agree, because editors may write in
 * parts. The content is compared, because the file's time may not change if a volume is replaced.
 */
const READ_EVERY_MS = 1_000;

/**
 * Follows the tokens file: if it changes, its tokens replace the present ones. A missing, empty or faulty file changes
 * nothing, so that a mistake locks no caller out; a log line reports it without the file's content.
 */
export function followTokensFile({ logger, sleep }: LogContext, file: TokensFile): AsyncDisposable {
  const { fixed, authentication } = file;
  let inForce = file.tokens;
  let seen: string | undefined;
  let judged: string | undefined;
  /** Replaces the present tokens by those of the file's new text, if they are valid and differ. */
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
  return repeatUntilDisposed(sleep, READ_EVERY_MS, async () => {
    const text = await file.read(file.path).catch(() => undefined);
    const digest = text === undefined ? "unreadable" : hash("sha256", text);
    const isSettled = digest === seen;
    seen = digest;
    if (!isSettled || digest === judged) return;
    judged = digest;
    judge(text);
  });
}
