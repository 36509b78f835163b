import type { Secret } from "../../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import { JSON_BODY, type NetworkAnswer, type SafeFetch, type SafeRequest } from "../safe-fetch.ts";
import { wordDispatch } from "../plain-text.ts";

export interface WebhookOptions {
  /** The address holds the credential. */
  readonly webhookUrl: Secret;
  readonly safeFetch: SafeFetch;
}

/** How one network's webhook is called, and how its answers are read. */
interface Webhook {
  readonly network: string;
  readonly answers: AnswerRules;
  /** Returns the JSON that posts a text unchanged. */
  formatMessage(text: string): string;
  /** Returns the URL to which messages are posted. Default: the webhook's address. */
  toPostUrl?(webhookUrl: string): string;
  /** Headers of messages and probes. Default: those of JSON. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Returns a request that asks, without posting, whether the webhook is alive. */
  probe(webhookUrl: string): { readonly url: string } & Pick<SafeRequest, "method" | "body">;
  isAlive(answer: NetworkAnswer): boolean;
  /** The result of a check that found the webhook alive, in words. */
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
