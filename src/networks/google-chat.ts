import type { Secret } from "../platform/secret.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import { classifyGoogleChatAnswer, describeGoogleChat, missesContent } from "./google-chat-answers.ts";
import { googleChatText } from "./google-chat-text.ts";
import type { Channel } from "./network.ts";
import type { NetworkAnswer, SafeFetch } from "./safe-fetch.ts";
import { wordDispatch } from "./wording.ts";

export interface GoogleChatOptions {
  /** Its query holds the credential. */
  readonly webhookUrl: Secret;
  readonly safeFetch: SafeFetch;
}

/** A webhook of a Google Chat space as the chat channel. */
export function createGoogleChatChannel({ webhookUrl, safeFetch }: GoogleChatOptions): Channel {
  function post(message: object, timeoutMs: number): Promise<NetworkAnswer> {
    return safeFetch(webhookUrl.reveal(), {
      method: "POST",
      headers: { "content-type": "application/json; charset=utf-8" },
      body: JSON.stringify(message),
      timeoutMs,
    });
  }

  return {
    name: "chat",
    network: "google_chat",
    credential: webhookUrl,
    async send(dispatch, { timeoutMs }) {
      try {
        return classifyGoogleChatAnswer(await post({ text: googleChatText(wordDispatch(dispatch)) }, timeoutMs));
      } catch (fault) {
        return resultOfFault(fault, { deduplicates: false });
      }
    },
    async check(timeoutMs) {
      try {
        // Nothing in it to post, so a living webhook complains of that, and a dead one of its address.
        const answer = await post({}, timeoutMs);
        if (missesContent(answer)) return { ok: true, detail: "the webhook is alive" };
        return { ok: false, detail: `${describeGoogleChat(answer)}: check CHAT_WEBHOOK_URL` };
      } catch (fault) {
        return checkOfFault(fault);
      }
    },
  };
}
