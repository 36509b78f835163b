import { readFile } from "node:fs/promises";
import { sleep, type Clock } from "../../platform/clock.ts";
import type { HttpConfig } from "../../config/http.ts";
import type { EventLog } from "../../log/event-log.ts";
import type { Logger } from "../../platform/logger.ts";
import { createAuthentication, type Authentication } from "./authentication.ts";
import { recordFailures } from "./failed-authentications.ts";
import type { FailureLimit } from "./failure-limit.ts";
import { followTokensFile } from "./tokens-file.ts";

/** Authenticates callers, and limits those that fail. */
export interface Authenticator {
  readonly authentication: Authentication;
  readonly failureLimit: FailureLimit;
}

export interface AuthenticatorDeps {
  readonly http: HttpConfig;
  readonly limit: FailureLimit;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** `stack` ends it: what failed until then is recorded. */
export function openAuthenticator(
  { http, limit, eventLog, clock, logger }: AuthenticatorDeps,
  stack: AsyncDisposableStack,
): Authenticator {
  const authentication = createAuthentication(http);
  const failureLimit = stack.use(recordFailures({ limit, eventLog, clock, sleep, logger }));
  if (http.tokensFile !== undefined) {
    const read = (path: string) => readFile(path, "utf8");
    stack.use(followTokensFile({ ...http.tokensFile, tokens: http.tokens, authentication, read, sleep, logger }));
  }
  return { authentication, failureLimit };
}
