import type { AnswerRules } from "../dispatch-result.ts";
import type { Channel } from "../network.ts";
import type { NetworkAnswer } from "../safe-fetch.ts";
import { slackMessage } from "./slack-message.ts";
import { createWebhookChannel, type WebhookOptions } from "./webhook.ts";

/** A Slack incoming webhook as the chat channel. */
export function createSlackChannel(options: WebhookOptions): Channel {
  return createWebhookChannel(options, {
    network: "slack",
    answers: SLACK_ANSWERS,
    messageOf: slackMessage,
    // Nothing in it to post, so a living webhook complains, and a dead one answers that it is dead.
    probe: (url) => ({ url, method: "POST", body: "{}" }),
    isAlive: (answer) => answer.status === 400 && EMPTY_PAYLOAD_ERRORS.has(errorIn(answer)),
    alive: "the webhook is alive",
  });
}

/** What a living webhook answers to a payload without a message. */
const EMPTY_PAYLOAD_ERRORS: ReadonlySet<string> = new Set(["no_text", "invalid_payload"]);

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
 * By the rules of dispatch-result.ts a 429 and what was certainly not sent is tried again, as often as
 * delivery/retry.ts says; what may have arrived is in doubt, since Slack does not recognise a repeat. A 200 whose body
 * is not `ok` comes from a machine between Slack and us, so the delivery is in doubt.
 * https://api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks
 */
export const SLACK_ANSWERS: AnswerRules = {
  accepted: ({ status, text, truncated }) => (status === 200 && !truncated && text.trim() === "ok" ? {} : undefined),
  describe: (answer) => `Slack answered ${answer.status} ${errorIn(answer)}`.trimEnd(),
  refusesChannel: (answer) => CHANNEL_STATUSES.has(answer.status) || CHANNEL_ERRORS.has(errorIn(answer)),
};

/** Slack's error code where the body is one, else nothing: any other text is not repeated. */
function errorIn({ text }: NetworkAnswer): string {
  return /^\s*([a-z][a-z_]{1,62})\s*$/.exec(text)?.[1] ?? "";
}
