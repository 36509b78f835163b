import { readFile } from "node:fs/promises";
import { sleep, systemClock } from "../platform/clock.ts";
import type { HttpConfig } from "../config/http.ts";
import type { EventLog } from "../log/event-log.ts";
import type { Logger } from "../platform/logger.ts";
import { createAuthentication, type Authentication } from "./authentication.ts";
import { recordFailures } from "./failed-authentications.ts";
import { createRateLimit, type RateLimit } from "./rate-limit.ts";
import { followTokensFile } from "./tokens-file.ts";

/** Failed authentications a minute from one address. */
const FAILED_AUTHENTICATIONS_PER_MINUTE = 10;

/** Who gets in, and what is held against whoever does not. */
export interface Authenticator {
  readonly authentication: Authentication;
  readonly failureLimit: RateLimit;
}

/** `stack` ends it: what failed until then is recorded. */
export function openAuthenticator(
  { http, eventLog, logger }: { readonly http: HttpConfig; readonly eventLog: EventLog; readonly logger: Logger },
  stack: AsyncDisposableStack,
): Authenticator {
  const authentication = createAuthentication(http);
  const limit = createRateLimit(FAILED_AUTHENTICATIONS_PER_MINUTE, systemClock);
  const failureLimit = stack.use(recordFailures({ limit, eventLog, clock: systemClock, sleep, logger }));
  if (http.tokensFile !== undefined) {
    const read = (path: string) => readFile(path, "utf8");
    stack.use(followTokensFile({ ...http.tokensFile, tokens: http.tokens, authentication, read, sleep, logger }));
  }
  return { authentication, failureLimit };
}
