import type { AnswerRules } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import type { NetworkAnswer } from "../safe-fetch.ts";
import { ELLIPSIS } from "../sanitize-and-truncate-text.ts";
import { createWebhookChannel, type WebhookOptions } from "./webhook.ts";

export function createSlackChannel(options: WebhookOptions): Channel {
  return createWebhookChannel(options, {
    network: "slack",
    answers: SLACK_ANSWERS,
    formatMessage: slackMessage,
    // An empty request posts nothing: Slack complains about its missing text if the webhook works, or else answers that
    // the webhook does not exist.
    probe: (url) => ({ url, method: "POST", body: "{}" }),
    isAlive: (answer) => answer.status === 400 && EMPTY_PAYLOAD_ERRORS.has(errorIn(answer)),
    alive: "the webhook is alive",
  });
}

/** Error codes by which Slack answers a check of a working webhook, whose payload has no message. */
const EMPTY_PAYLOAD_ERRORS: ReadonlySet<string> = new Set(["no_text", "invalid_payload"]);

/** Error codes by which Slack refuses every message of the channel, with any status. */
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
 * How Slack's answers are read. Slack recognises no repeat, so anything that may have arrived is in doubt; a 200 whose
 * body is not `ok` comes from a proxy.
 * https://api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks
 */
export const SLACK_ANSWERS: AnswerRules = {
  accepted: ({ status, text, truncated }) => (status === 200 && !truncated && text.trim() === "ok" ? {} : undefined),
  describe: (answer) => `Slack answered ${answer.status} ${errorIn(answer)}`.trimEnd(),
  refusesChannel: (answer) => CHANNEL_STATUSES.has(answer.status) || CHANNEL_ERRORS.has(errorIn(answer)),
};

/**
 * Returns Slack's error code if the body is one, else an empty text, because no other text of an answer may be
 * repeated.
 */
function errorIn({ text }: NetworkAnswer): string {
  return /^\s*([a-z][a-z_]{1,62})\s*$/.exec(text)?.[1] ?? "";
}

/**
 * Maximum number of characters of a section of a Slack message:
 * https://docs.slack.dev/reference/block-kit/composition-objects/text-object
 */
const SECTION_CHARS_MAX = 3000;

/**
 * Maximum number of sections of a Slack message. With the fallback text, the largest message has 11,000 characters;
 * from about 13,200 on, Slack answers `msg_blocks_too_long`.
 */
const SECTIONS_MAX = 3;

/** Maximum number of characters of a Slack message's fallback, the text that a notification on a telephone shows. */
const FALLBACK_CHARS_MAX = 2000;

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/**
 * Returns a Slack payload that shows `text` unchanged: `plain_text` sections have no formatting, and the escapes leave
 * no `<!channel>` or `<url|text>` in the fallback. Links are not unfurled, because Slack would visit them.
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

/**
 * Escapes a text for Slack and splits it into at most `parts` pieces of at most `size` UTF-16 units. Neither characters
 * nor escapes are cut.
 */
function packed(text: string, size: number, parts: number): string[] {
  const whole = text.replace(/[&<>]/g, (character) => ESCAPES[character] ?? character);
  if (whole.length <= size) return whole.trim() === "" ? [] : [whole];
  const pieces: string[] = [];
  let piece = "";
  for (const character of text) {
    const escaped = ESCAPES[character] ?? character;
    const last = pieces.length === parts - 1;
    // The last piece keeps room for the ellipsis.
    if (piece.length + escaped.length > (last ? size - ELLIPSIS.length : size)) {
      if (last) return [...pieces, piece + ELLIPSIS];
      pieces.push(piece);
      piece = "";
    }
    piece += escaped;
  }
  return [...pieces, piece].filter((one) => one.trim() !== "");
}
