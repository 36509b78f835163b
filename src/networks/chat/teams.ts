import { Type } from "@sinclair/typebox";
import { type AnswerRules, parseAnswer } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import type { NetworkAnswer } from "../safe-fetch.ts";
import { ELLIPSIS } from "../sanitize-and-truncate-text.ts";
import { createWebhookChannel, type WebhookOptions } from "./webhook.ts";

/** Creates the chat channel for a Teams workflow. The credential is `sig` in the workflow's address. */
export function createTeamsChannel(options: WebhookOptions): Channel {
  return createWebhookChannel(options, {
    network: "teams",
    answers: TEAMS_ANSWERS,
    formatMessage: teamsMessage,
    // Checks only the host of the address, because any request to the address itself starts the workflow.
    probe: (url) => ({ url: `${new URL(url).origin}/`, method: "GET" }),
    isAlive: () => true,
    alive:
      "the host answers; a workflow cannot be asked without posting: send a test (POST /api/tracking/test) and look for it in the channel",
  });
}

const REFUSED = Type.Object({ error: Type.Object({ code: Type.String({ pattern: "^[A-Za-z]{1,80}$" }) }) });

/**
 * Statuses by which Teams refuses every message of the channel: a wrong signature, or a flow or environment that is
 * gone.
 */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405, 410]);

/**
 * Error codes by which Teams refuses every message of the channel, whatever the status: the flow is switched off, or
 * its address requires another way of signing in.
 */
const CHANNEL_CODES = /^(?:DirectApi|Workflow\w*(?:Disabled|NotEnabled|NotFound|Suspended))/;

/** Matches the id of a run in a Teams flow's history. */
const RUN = /^\w{1,100}$/;

/**
 * How Teams' answers are read. A 202 says only that the workflow took the message; the run history, where `networkId`
 * names the run, shows whether it posted it. A 200 counts if the flow's own header is there; no repeat is recognised.
 */
export const TEAMS_ANSWERS: AnswerRules = {
  accepted({ status, headers }) {
    const run = RUN.exec(headers.get("x-ms-workflow-run-id") ?? "")?.[0];
    return status === 202 || (status === 200 && run !== undefined) ? { networkId: run } : undefined;
  },
  // Leaves out the message of Teams' answer, which can name the workflow's address.
  describe: (answer) => `The Teams workflow answered ${answer.status} ${codeIn(answer)}`.trimEnd(),
  refusesChannel: (answer) => CHANNEL_STATUSES.has(answer.status) || CHANNEL_CODES.test(codeIn(answer)),
};

function codeIn({ text }: NetworkAnswer): string {
  return parseAnswer(REFUSED, text)?.error.code ?? "";
}

/**
 * Maximum size of a Teams message in bytes. Teams accepts "about 28 KB", and documents no exact number.
 * https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
 */
const MESSAGE_BYTES_MAX = 28_000;

/**
 * Opening of a macro such as `{{DATE(…)}}`, which a TextRun would replace too. Split between two runs, it opens
 * nothing.
 */
const MACRO_OPENING = /(?<=\{)(?=\{)/;

/**
 * Returns a Teams workflow's input that posts `text` unchanged: a card with a block per line. A TextRun has no markdown
 * (https://learn.microsoft.com/adaptive-cards/schema-explorer/text-run), and mentions need entities, so nothing is
 * escaped.
 */
export function teamsMessage(text: string): string {
  const blocks: object[] = [];
  let left = MESSAGE_BYTES_MAX - Buffer.byteLength(formatCard([]));
  for (const line of text.split("\n")) {
    const size = countBytes(line);
    // Keeps room for the ellipsis, because more lines may follow.
    if (size > left - countBytes(ELLIPSIS)) {
      blocks.push(toBlock(cut(line, left) + ELLIPSIS));
      break;
    }
    blocks.push(toBlock(line));
    left -= size;
  }
  return formatCard(blocks);
}

/** Shortens a line to what fits together with an ellipsis, and never cuts a character in half. */
function cut(line: string, bytes: number): string {
  // Finds the length by bisection, because a line's size in JSON grows with its length.
  let fits = 0;
  let tooLong = line.length + 1;
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (countBytes(line.slice(0, middle).toWellFormed() + ELLIPSIS) <= bytes) fits = middle;
    else tooLong = middle;
  }
  return line.slice(0, fits).replace(/[\ud800-\udbff]$/, "");
}

/** Counts the JSON bytes of the block that shows a line, with the comma after it. */
function countBytes(line: string): number {
  return Buffer.byteLength(JSON.stringify(toBlock(line))) + 1;
}

function toBlock(line: string): object {
  // An empty line gets a non-breaking space, because Teams would not show a line with an empty run.
  const runs = line === "" ? ["\u00a0"] : line.split(MACRO_OPENING);
  return { type: "RichTextBlock", spacing: "None", inlines: runs.map((text) => ({ type: "TextRun", text })) };
}

function formatCard(body: readonly object[]): string {
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body,
    msteams: { width: "Full" },
  };
  return JSON.stringify({
    type: "message",
    attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", content }],
  });
}
