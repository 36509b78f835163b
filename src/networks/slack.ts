import type { Secret } from "../platform/secret.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import type { Channel } from "./network.ts";
import { JSON_BODY, type NetworkAnswer, type SafeFetch } from "./safe-fetch.ts";
import { classifySlackAnswer, slackError } from "./slack-answers.ts";
import { slackMessage } from "./slack-message.ts";
import { wordDispatch } from "./wording.ts";

/** What a living webhook says to a payload without a message. */
const EMPTY_PAYLOAD_ERRORS: ReadonlySet<string> = new Set(["no_text", "invalid_payload"]);

export interface SlackOptions {
  /** The address is the credential. */
  readonly webhookUrl: Secret;
  readonly safeFetch: SafeFetch;
}

/** A Slack incoming webhook as the chat channel. */
export function createSlackChannel({ webhookUrl, safeFetch }: SlackOptions): Channel {
  function post(body: string, timeoutMs: number): Promise<NetworkAnswer> {
    return safeFetch(webhookUrl.reveal(), {
      method: "POST",
      headers: JSON_BODY,
      body,
      timeoutMs,
    });
  }

  return {
    name: "chat",
    network: "slack",
    credential: webhookUrl,
    async send(dispatch, { timeoutMs }) {
      try {
        return classifySlackAnswer(await post(slackMessage(wordDispatch(dispatch)), timeoutMs));
      } catch (fault) {
        return resultOfFault(fault, { deduplicates: false });
      }
    },
    async check(timeoutMs) {
      try {
        // Nothing in it to post, so a living webhook complains and a dead one says that it is dead.
        const { status, text } = await post("{}", timeoutMs);
        const code = slackError(text);
        if (status === 400 && code !== undefined && EMPTY_PAYLOAD_ERRORS.has(code)) {
          return { ok: true, detail: "the webhook is alive" };
        }
        return {
          ok: false,
          detail: `Slack answered ${status}${code === undefined ? "" : ` ${code}`}`,
        };
      } catch (fault) {
        return checkOfFault(fault);
      }
    },
  };
}
