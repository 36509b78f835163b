import { readFile } from "node:fs/promises";
import { sleep, systemClock } from "../platform/clock.ts";
import type { HttpConfig } from "../config/http.ts";
import type { Journal } from "../log/event-log.ts";
import type { Logger } from "../platform/logger.ts";
import { createAuthentication, type Authentication } from "./auth.ts";
import { recordFailures } from "./failure-record.ts";
import { createRateLimit, type RateLimit } from "./rate-limit.ts";
import { followTokensFile } from "./tokens-file.ts";

/** Failed authentications a minute from one address. */
const FAILED_AUTHENTICATIONS_PER_MINUTE = 10;

/** Who gets in, and what is held against whoever does not. */
export interface Access {
  readonly authentication: Authentication;
  readonly failureLimit: RateLimit;
}

/** `stack` ends it: what failed until then is recorded. */
export function openAccess(
  { http, journal, log }: { readonly http: HttpConfig; readonly journal: Journal; readonly log: Logger },
  stack: AsyncDisposableStack,
): Access {
  const authentication = createAuthentication(http);
  const limit = createRateLimit(FAILED_AUTHENTICATIONS_PER_MINUTE, systemClock);
  const failureLimit = stack.use(recordFailures({ limit, journal, clock: systemClock, sleep, log }));
  if (http.tokensFile !== undefined) {
    const read = (path: string) => readFile(path, "utf8");
    stack.use(followTokensFile({ ...http.tokensFile, tokens: http.tokens, authentication, read, sleep, log }));
  }
  return { authentication, failureLimit };
}
