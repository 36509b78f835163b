import { createOAuth } from "../account/oauth.ts";
import type { MessagingConfig } from "../config/channels.ts";
import type { Config } from "../config/config.ts";
import { createDiscordChannel } from "../networks/chat/discord.ts";
import { createGoogleChatChannel } from "../networks/chat/google-chat.ts";
import { createLineChannel } from "../networks/messaging/line.ts";
import { createOpenAiAdsChannel } from "../networks/ads/openai.ts";
import { createSnapChannel } from "../networks/ads/snap.ts";
import { createMetaChannel } from "../networks/meta/meta-ads-channel.ts";
import type { Channel } from "../networks/network.ts";
import { createLineFetch, createSafeFetch, type SafeFetch } from "../networks/safe-fetch.ts";
import { createSlackChannel } from "../networks/chat/slack.ts";
import { createTeamsChannel } from "../networks/chat/teams.ts";
import { createStandardWebhookChannel } from "../networks/event-webhook-channel.ts";
import { createTelegramChannel } from "../networks/messaging/telegram.ts";
import { createWhatsappChannel } from "../networks/messaging/whatsapp.ts";
import { createActivityStream } from "../networks/x/activity-stream.ts";
import { createX } from "../networks/x/x-api.ts";
import { systemClock, type Clock } from "../platform/clock-ids-and-timers.ts";

/** Client of the recipients' network, and the OAuth client that links an account of it. */
export type Social = NonNullable<ReturnType<typeof connectNetworks>["social"]>;

/** Creates the clients of all configured networks. Sends no request yet. */
export function connectNetworks(config: Config, clock: Clock = systemClock, safeFetch = outbound(config, clock)) {
  const { x, meta, openAiAds, snap, chat, messaging, webhooks } = config;
  const ads = [
    meta && createMetaChannel({ ...meta, baseUrl: meta.apiUrl, safeFetch }),
    openAiAds && createOpenAiAdsChannel({ ...openAiAds, baseUrl: openAiAds.apiUrl, safeFetch, clock }),
    snap && createSnapChannel({ ...snap, baseUrl: snap.apiUrl, safeFetch, clock }),
  ];
  const chats = chat && CHATS[chat.provider]({ ...chat, safeFetch });
  const messages = messaging && createMessagingChannel(messaging, safeFetch);
  const receivers = webhooks.map((webhook) => createStandardWebhookChannel({ ...webhook, safeFetch }));
  const redirectUri = `${config.http.publicUrl}/social/callback`;
  const lineFetch = createLineFetch({ allowedOrigins: outboundUrls(config), clock });
  const bearer = x?.appBearer;
  return {
    /** Clients of the channels that have credentials. */
    channels: [...ads, chats, messages, ...receivers].filter((channel) => channel !== undefined),
    /** Client of the recipients' network; undefined if X is not configured. */
    social: x && {
      network: createX({ apiUrl: x.apiUrl, safeFetch, clock }),
      /**
       * X's stream of signals: notifications of received messages, read receipts and revoked authorizations. Undefined
       * if no bearer token is configured.
       */
      stream: bearer && createActivityStream({ apiUrl: x.apiUrl, safeFetch, clock, bearer, lineFetch }),
      oauth: createOAuth({ ...x, redirectUri, safeFetch, clock }),
    },
  };
}

const CHATS = {
  slack: createSlackChannel,
  discord: createDiscordChannel,
  google_chat: createGoogleChatChannel,
  teams: createTeamsChannel,
};

function createMessagingChannel(config: MessagingConfig, safeFetch: SafeFetch): Channel {
  switch (config.provider) {
    case "telegram":
      return createTelegramChannel({ ...config, baseUrl: config.apiUrl, safeFetch });
    case "line":
      return createLineChannel({ ...config, baseUrl: config.apiUrl, safeFetch });
    case "whatsapp":
      return createWhatsappChannel({ ...config, baseUrl: config.apiUrl, safeFetch });
  }
}

/** Returns the function for all outgoing requests. It sends them only to the configured networks and the witness. */
export function outbound(config: Config, clock: Clock = systemClock): SafeFetch {
  return createSafeFetch({ allowedOrigins: outboundUrls(config), clock });
}

/**
 * Returns the URLs of the configured networks and of the witness. Only their origins are used, and some URLs are
 * secrets.
 */
export function outboundUrls(config: Config): readonly string[] {
  const { x, meta, openAiAds, snap, chat, messaging, webhooks, witness } = config;
  const urls = [
    x?.apiUrl,
    meta?.apiUrl,
    openAiAds?.apiUrl,
    snap?.apiUrl,
    chat?.webhookUrl.reveal(),
    messaging?.apiUrl,
    ...webhooks.map(({ url }) => url.reveal()),
    witness?.url,
  ];
  return urls.filter((url) => url !== undefined);
}
