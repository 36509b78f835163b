import type { Secret } from "../platform/secret.ts";
import { VERSION } from "../platform/version.ts";
import { classifyDiscordAnswer, describeDiscord } from "./discord-answers.ts";
import { discordText } from "./discord-text.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import type { Channel } from "./network.ts";
import type { SafeFetch } from "./safe-fetch.ts";
import { wordDispatch } from "./wording.ts";

/** `SUPPRESS_EMBEDS`: Discord visits no link of the message. */
const SUPPRESS_EMBEDS = 1 << 2;

/** Discord wants clients to name themselves: https://docs.discord.com/developers/reference#user-agent */
const USER_AGENT = `DiscordBot (reachlog, ${VERSION})`;

/**
 * The version that we speak, whatever the address says. The one that Discord shows says none, which means the sixth: its
 * pauses are in milliseconds. https://docs.discord.com/developers/reference#api-versioning
 */
const WEBHOOKS = "/api/v10/webhooks/";

export interface DiscordOptions {
  /** The address is the credential; it may name a thread in its query. */
  readonly webhookUrl: Secret;
  readonly safeFetch: SafeFetch;
}

/** A Discord webhook as the chat channel. */
export function createDiscordChannel({ webhookUrl, safeFetch }: DiscordOptions): Channel {
  return {
    name: "chat",
    network: "discord",
    credential: webhookUrl,
    async send(dispatch, { timeoutMs }) {
      const url = addressOf(webhookUrl);
      // Else Discord answers before it has saved the message, and a failure to save it shows nowhere.
      url.searchParams.set("wait", "true");
      const content = discordText(wordDispatch(dispatch));
      try {
        const answer = await safeFetch(url.href, {
          method: "POST",
          headers: { "content-type": "application/json", "user-agent": USER_AGENT },
          body: JSON.stringify({ content, allowed_mentions: { parse: [] }, flags: SUPPRESS_EMBEDS }),
          timeoutMs,
        });
        return classifyDiscordAnswer(answer);
      } catch (fault) {
        return resultOfFault(fault, { deduplicates: false });
      }
    },
    async check(timeoutMs) {
      try {
        const headers = { "user-agent": USER_AGENT };
        const answer = await safeFetch(addressOf(webhookUrl).href, { method: "GET", headers, timeoutMs });
        if (answer.status === 200) return { ok: true, detail: "the webhook is alive" };
        return { ok: false, detail: `${describeDiscord(answer)}: check CHAT_WEBHOOK_URL` };
      } catch (fault) {
        return checkOfFault(fault);
      }
    },
  };
}

function addressOf(webhookUrl: Secret): URL {
  const url = new URL(webhookUrl.reveal());
  url.pathname = url.pathname.replace(/\/api(?:\/v\d+)?\/webhooks\//, WEBHOOKS);
  return url;
}
