import type { DispatchResult } from "./network.ts";
import { retryAfterOf } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

/** Errors that no other message would fare better with, whatever the status they come with. */
const CHANNEL_ERRORS: ReadonlySet<string> = new Set([
  "action_prohibited",
  "channel_is_archived",
  "channel_not_found",
  "invalid_token",
  "no_active_hooks",
  "no_service",
  "no_service_id",
  "no_team",
  "posting_to_general_channel_denied",
  "team_disabled",
  "user_not_found",
]);

const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 410]);

/**
 * What a webhook's answer means. Slack does not de-duplicate: only a 429 and a plain refusal prove that nothing was
 * posted. A 200 whose body is not `ok` comes from something between Slack and us, so nobody knows.
 * https://api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks
 */
export function classifySlackAnswer(answer: NetworkAnswer): DispatchResult {
  const { status, truncated } = answer;
  if (status === 200 && !truncated && answer.text.trim() === "ok") return { outcome: "delivered", status };
  const code = slackError(answer.text);
  const detail = `Slack answered ${status}${code === undefined ? "" : ` ${code}`}`;
  if (status === 429) {
    const pause = retryAfterOf(answer.headers);
    return {
      outcome: "retryable",
      status,
      detail,
      ...(pause === undefined ? {} : { retryAfterMs: pause }),
    };
  }
  // 408 leaves open how much the server had understood.
  if (status < 400 || status === 408 || status >= 500) return { outcome: "in_doubt", status, detail };
  const channel = CHANNEL_STATUSES.has(status) || (code !== undefined && CHANNEL_ERRORS.has(code));
  return { outcome: "refused", status, detail, channel };
}

/** Slack's error code, where the body is one: any other text is not repeated. */
export function slackError(text: string): string | undefined {
  return /^\s*([a-z][a-z_]{1,62})\s*$/.exec(text)?.[1];
}
