import { readFile } from "node:fs/promises";
import { sleep } from "../../platform/clock.ts";
import type { HttpConfig } from "../../config/http.ts";
import { createAuthentication } from "./bearer-tokens.ts";
import { recordFailures } from "./record-failures.ts";
import type { FailureLimit } from "./failure-limit.ts";
import { recordTokenUse } from "./token-use.ts";
import { followTokensFile } from "./tokens-file.ts";
import type { PartDeps } from "../../log/event-log.ts";

export type Authenticator = ReturnType<typeof openAuthenticator>;

interface AuthenticatorDeps extends Pick<PartDeps, "eventLog" | "clock" | "logger"> {
  readonly http: HttpConfig;
  readonly limit: FailureLimit;
}

/** Authenticates callers, and limits those that fail. `stack` ends it: what was used and what failed until then is recorded. */
export function openAuthenticator(
  { http, limit, eventLog, clock, logger }: AuthenticatorDeps,
  stack: AsyncDisposableStack,
) {
  const { note } = stack.use(recordTokenUse({ eventLog, sleep, logger }));
  const authentication = createAuthentication(http, clock, undefined, note);
  const failureLimit = stack.use(recordFailures({ limit, eventLog, clock, sleep, logger }));
  if (http.tokensFile !== undefined) {
    const read = (path: string) => readFile(path, "utf8");
    stack.use(followTokensFile({ ...http.tokensFile, tokens: http.tokens, authentication, read, sleep, logger }));
  }
  return { authentication, failureLimit };
}
