import { Type } from "@sinclair/typebox";
import { type AnswerRules, parseAnswer } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import type { NetworkAnswer } from "../safe-fetch.ts";
import { ELLIPSIS } from "../plain-text.ts";
import { createWebhookChannel, type WebhookOptions } from "./webhook.ts";

/** A Teams workflow as the chat channel; of its address `sig` is the credential. */
export function createTeamsChannel(options: WebhookOptions): Channel {
  return createWebhookChannel(options, {
    network: "teams",
    answers: TEAMS_ANSWERS,
    formatMessage: teamsMessage,
    // Any request to the address itself would start the workflow, so only its host is asked.
    probe: (url) => ({ url: `${new URL(url).origin}/`, method: "GET" }),
    isAlive: () => true,
    alive:
      "the host answers; a workflow cannot be asked without posting: send a test (POST /api/tracking/test) and look for it in the channel",
  });
}

const REFUSED = Type.Object({ error: Type.Object({ code: Type.String({ pattern: "^[A-Za-z]{1,80}$" }) }) });

/** Signature refused, flow or environment gone. */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405, 410]);

/** With other statuses: the flow is switched off, or its address wants another way of signing in. */
const CHANNEL_CODES = /^(?:DirectApi|Workflow\w*(?:Disabled|NotEnabled|NotFound|Suspended))/;

/** What a run is found by in the flow's history. */
const RUN = /^\w{1,100}$/;

/**
 * A 202 means that the workflow took the message: whether it posted it shows in its run history alone, where `networkId`
 * names the run. A 200 counts where the flow was built to answer by itself, which its header shows. A workflow does not
 * recognise a repeat.
 */
export const TEAMS_ANSWERS: AnswerRules = {
  accepted({ status, headers }) {
    const run = RUN.exec(headers.get("x-ms-workflow-run-id") ?? "")?.[0];
    return status === 202 || (status === 200 && run !== undefined) ? { networkId: run } : undefined;
  },
  // Never its words, which can name the flow's address.
  describe: (answer) => `The Teams workflow answered ${answer.status} ${codeIn(answer)}`.trimEnd(),
  refusesChannel: (answer) => CHANNEL_STATUSES.has(answer.status) || CHANNEL_CODES.test(codeIn(answer)),
};

function codeIn({ text }: NetworkAnswer): string {
  return parseAnswer(REFUSED, text)?.error.code ?? "";
}

/**
 * What Teams takes of a message is "about 28 KB"; what it takes to say so is not counted to the byte.
 * https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
 */
const MESSAGE_BYTES_MAX = 28_000;

/** A TextRun too words `{{DATE(…)}}` for the reader: halved, the opening is none. */
const MACRO_OPENING = /(?<=\{)(?=\{)/;

/**
 * A workflow's input that posts `text` as it stands: an adaptive card with a line of text each. A TextRun, unlike a
 * TextBlock, knows no markdown (https://learn.microsoft.com/adaptive-cards/schema-explorer/text-run), so nothing is
 * escaped, and mentions take an entity of their own.
 */
export function teamsMessage(text: string): string {
  const blocks: object[] = [];
  let left = MESSAGE_BYTES_MAX - Buffer.byteLength(formatCard([]));
  for (const line of text.split("\n")) {
    const size = countBytes(line);
    // Room for the mark that something is missing is kept for as long as there may be more.
    if (size > left - countBytes(ELLIPSIS)) {
      blocks.push(toBlock(cut(line, left) + ELLIPSIS));
      break;
    }
    blocks.push(toBlock(line));
    left -= size;
  }
  return formatCard(blocks);
}

/** As much of a line as there is room for beside an ellipsis, never half a character. */
function cut(line: string, bytes: number): string {
  // Halving: what a line takes in JSON grows with its length.
  let fits = 0;
  let tooLong = line.length + 1;
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (countBytes(line.slice(0, middle).toWellFormed() + ELLIPSIS) <= bytes) fits = middle;
    else tooLong = middle;
  }
  return line.slice(0, fits).replace(/[\ud800-\udbff]$/, "");
}

/** Bytes of a line's block in the list, with its comma. */
function countBytes(line: string): number {
  return Buffer.byteLength(JSON.stringify(toBlock(line))) + 1;
}

function toBlock(line: string): object {
  // An empty run would be no line at all.
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
