import { Type } from "@sinclair/typebox";
import type { AnswerRules } from "../dispatch-result.ts";
import { parseAnswer } from "../json-answer.ts";
import type { Channel } from "../network.ts";
import type { NetworkAnswer } from "../safe-fetch.ts";
import { teamsMessage } from "./teams-card.ts";
import { createWebhookChannel, type WebhookOptions } from "./webhook.ts";

/** A Teams workflow as the chat channel; of its address `sig` is the credential. */
export function createTeamsChannel(options: WebhookOptions): Channel {
  return createWebhookChannel(options, {
    network: "teams",
    answers: TEAMS_ANSWERS,
    messageOf: teamsMessage,
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
