import { secret, type Secret } from "../platform/secret.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import { GRAPH_VERSION, graphErrorOf } from "./graph.ts";
import type { Channel } from "./network.ts";
import type { SafeFetch } from "./safe-fetch.ts";
import { classifyWhatsappAnswer, describeWhatsapp } from "./whatsapp-answers.ts";
import { whatsappText } from "./whatsapp-text.ts";
import { wordDispatch } from "./wording.ts";

export interface WhatsappOptions {
  /** Id of the sending number, which is not the number itself. */
  readonly phoneNumberId: string;
  readonly accessToken: Secret;
  /** The recipient's number with its country code. */
  readonly to: string;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}

/**
 * The WhatsApp Cloud API as the messaging channel. It takes free text only within 24 hours of the recipient's last
 * message to the number; after that it refuses, and the channel is stopped until they write again.
 */
export function createWhatsappChannel(options: WhatsappOptions): Channel {
  const { phoneNumberId, accessToken, to, safeFetch } = options;
  const numberUrl = `${options.baseUrl}/${GRAPH_VERSION}/${encodeURIComponent(phoneNumberId)}`;
  const authorization = () => `Bearer ${accessToken.reveal()}`;
  return {
    name: "messaging",
    network: "whatsapp",
    // Number and recipient too: a wrong one stops the channel as a wrong token does.
    credential: secret(`${phoneNumberId}\n${to}\n${accessToken.reveal()}`),
    async send(dispatch, { timeoutMs }) {
      const text = { preview_url: false, body: whatsappText(wordDispatch(dispatch)) };
      try {
        const answer = await safeFetch(`${numberUrl}/messages`, {
          method: "POST",
          headers: { authorization: authorization(), "content-type": "application/json" },
          body: JSON.stringify({ messaging_product: "whatsapp", recipient_type: "individual", to, type: "text", text }),
          timeoutMs,
        });
        return classifyWhatsappAnswer(answer);
      } catch (fault) {
        return resultOfFault(fault, { deduplicates: false });
      }
    },
    async check(timeoutMs) {
      try {
        const headers = { authorization: authorization() };
        const answer = await safeFetch(`${numberUrl}?fields=id`, { method: "GET", headers, timeoutMs });
        if (answer.status === 200) return { ok: true, detail: "the phone number answers to the access token" };
        const detail = describeWhatsapp(answer.status, graphErrorOf(answer));
        return { ok: false, detail: `${detail}: check WHATSAPP_PHONE_NUMBER_ID and WHATSAPP_ACCESS_TOKEN` };
      } catch (fault) {
        return checkOfFault(fault);
      }
    },
  };
}
