import type { AnswerRules } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import type { NetworkAnswer } from "../safe-fetch.ts";
import { ELLIPSIS } from "../plain-text.ts";
import { createWebhookChannel, type WebhookOptions } from "./webhook.ts";

export function createSlackChannel(options: WebhookOptions): Channel {
  return createWebhookChannel(options, {
    network: "slack",
    answers: SLACK_ANSWERS,
    formatMessage: slackMessage,
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
 * By the rules of answer.ts a 429 and what was certainly not sent is tried again, as often as
 * delivery/attempt-outcome.ts says; what may have arrived is in doubt, since Slack does not recognise a repeat. A 200 whose body
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

/** https://docs.slack.dev/reference/block-kit/composition-objects/text-object */
const SECTION_CHARS_MAX = 3000;

/** With the fallback 11,000 characters: near 13,200 Slack answers `msg_blocks_too_long`. */
const SECTIONS_MAX = 3;

/** The fallback is what a notification on a telephone shows. */
const FALLBACK_CHARS_MAX = 2000;

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/**
 * A webhook's payload that shows `text` as it stands: `plain_text` sections know no formatting, and the escapes leave
 * no `<!channel>` or `<url|text>` to be read in the fallback. Links are not unfurled: Slack would visit them.
 */
export function slackMessage(text: string): string {
  return JSON.stringify({
    text: packed(text, FALLBACK_CHARS_MAX, 1)[0] ?? "",
    mrkdwn: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: packed(text, SECTION_CHARS_MAX, SECTIONS_MAX).map((section) => ({
      type: "section",
      text: { type: "plain_text", text: section, emoji: false },
    })),
  });
}

/** The escaped text in at most `parts` pieces of at most `size` UTF-16 units; neither characters nor escapes are cut. */
function packed(text: string, size: number, parts: number): string[] {
  const whole = text.replace(/[&<>]/g, (character) => ESCAPES[character] ?? character);
  if (whole.length <= size) return whole.trim() === "" ? [] : [whole];
  const pieces: string[] = [];
  let piece = "";
  for (const character of text) {
    const escaped = ESCAPES[character] ?? character;
    const last = pieces.length === parts - 1;
    // The last piece keeps room for the mark that something is missing.
    if (piece.length + escaped.length > (last ? size - ELLIPSIS.length : size)) {
      if (last) return [...pieces, piece + ELLIPSIS];
      pieces.push(piece);
      piece = "";
    }
    piece += escaped;
  }
  return [...pieces, piece].filter((one) => one.trim() !== "");
}
