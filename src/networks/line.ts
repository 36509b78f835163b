import { secret, type Secret } from "../platform/secret.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import { classifyLineAnswer, describeLine } from "./line-answers.ts";
import type { Channel } from "./network.ts";
import { truncate } from "./plain-text.ts";
import type { SafeFetch } from "./safe-fetch.ts";
import { wordDispatch } from "./wording.ts";

/** UTF-16 units, as LINE counts: https://developers.line.biz/en/docs/messaging-api/text-character-count/ */
const TEXT_UNITS_MAX = 5_000;

/** A retry key holds for 24 hours; an hour less, for clocks that differ and requests on their way. */
const RECOGNISES_MS = 23 * 3_600_000;

export interface LineOptions {
  readonly accessToken: Secret;
  /** Id of a user, group or room. */
  readonly to: string;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}

/**
 * LINE's push messages as the messaging channel. The dispatch's id goes along as the retry key, so LINE takes each only
 * once, for 24 hours after it first came. A digest's id is made anew for each attempt: of it nobody knows whether
 * it arrived.
 */
export function createLineChannel({ accessToken, to, baseUrl, safeFetch }: LineOptions): Channel {
  const authorization = () => `Bearer ${accessToken.reveal()}`;
  return {
    name: "messaging",
    network: "line",
    // The recipient too: a wrong one stops the channel as a wrong token does.
    credential: secret(`${to}\n${accessToken.reveal()}`),
    recognisesMs: RECOGNISES_MS,
    async send(dispatch, { timeoutMs }) {
      const deduplicates = dispatch.kind !== "digest";
      const text = truncate(wordDispatch(dispatch), TEXT_UNITS_MAX);
      try {
        const answer = await safeFetch(`${baseUrl}/v2/bot/message/push`, {
          method: "POST",
          headers: {
            authorization: authorization(),
            "content-type": "application/json",
            "x-line-retry-key": dispatch.id,
          },
          body: JSON.stringify({ to, messages: [{ type: "text", text }] }),
          timeoutMs,
        });
        return classifyLineAnswer(answer, { deduplicates });
      } catch (fault) {
        return resultOfFault(fault, { deduplicates });
      }
    },
    async check(timeoutMs) {
      try {
        const headers = { authorization: authorization() };
        const answer = await safeFetch(`${baseUrl}/v2/bot/info`, { method: "GET", headers, timeoutMs });
        if (answer.status === 200) return { ok: true, detail: "the account answers to the access token" };
        return { ok: false, detail: `${describeLine(answer)}: check LINE_CHANNEL_ACCESS_TOKEN` };
      } catch (fault) {
        return checkOfFault(fault);
      }
    },
  };
}
