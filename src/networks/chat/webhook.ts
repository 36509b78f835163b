import type { Secret } from "../../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import { JSON_BODY, type NetworkAnswer, type SafeFetch } from "../safe-fetch.ts";
import { wordDispatch } from "../sanitize-and-truncate-text.ts";

export interface WebhookOptions {
  /** Address of the webhook, which holds the credential. */
  readonly webhookUrl: Secret;
  readonly safeFetch: SafeFetch;
}

/** A request that asks, without posting, whether a webhook is alive. */
interface Probe {
  readonly url: string;
  readonly method: "GET" | "POST";
  readonly body?: string;
}

/** A chat network's webhook: how it is called, and how its answers are read. */
interface Webhook {
  readonly network: string;
  readonly answers: AnswerRules;
  /** Returns the JSON body that makes the chat network show `text` unchanged, without formatting. */
  formatMessage(text: string): string;
  /** Returns the URL to which messages are posted. Default: the configured address of the webhook. */
  toPostUrl?(webhookUrl: string): string;
  /** Request headers of messages and probes. Default: those of JSON. */
  readonly headers?: Readonly<Record<string, string>>;
  probe(webhookUrl: string): Probe;
  isAlive(answer: NetworkAnswer): boolean;
  /** Words for the operator after a check that found the webhook alive. */
  readonly alive: string;
}

export function createWebhookChannel({ webhookUrl, safeFetch }: WebhookOptions, webhook: Webhook): Channel {
  const { network, answers, headers = JSON_BODY } = webhook;
  return {
    name: "chat",
    network,
    credential: webhookUrl,
    send(dispatch, { timeoutMs }) {
      const url = webhookUrl.reveal();
      const body = webhook.formatMessage(wordDispatch(dispatch));
      return toDispatchResult(
        safeFetch(webhook.toPostUrl?.(url) ?? url, { method: "POST", headers, body, timeoutMs }),
        answers,
      );
    },
    check: (timeoutMs) =>
      checked(async () => {
        const { url, ...request } = webhook.probe(webhookUrl.reveal());
        const answer = await safeFetch(url, { headers, ...request, timeoutMs });
        if (webhook.isAlive(answer)) return { ok: true, detail: webhook.alive };
        return { ok: false, detail: `${answers.describe(answer)}: check CHAT_WEBHOOK_URL` };
      }),
  };
}
