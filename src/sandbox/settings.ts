import type { World } from "./world.ts";

/** Where the networks are, as a service is configured. */
export function urlsOf(url: string, { slack, discord, googleChat, teams }: World) {
  const { space, key, token } = googleChat;
  const invoke = `workflows/${teams.workflow}/triggers/manual/paths/invoke`;
  const run = { "api-version": "2016-06-01", sp: "/triggers/manual/run", sv: "1.0", sig: teams.signature };
  return {
    xApi: `${url}/x`,
    xAuthorize: `${url}/x-web/i/oauth2/authorize`,
    meta: `${url}/meta`,
    slackWebhook: `${url}/slack${slack.path}`,
    discordWebhook: `${url}/discord/api/webhooks/${discord.webhookId}/${discord.webhookToken}`,
    googleChatWebhook: `${url}/google_chat/v1/spaces/${space}/messages?${new URLSearchParams({ key, token }).toString()}`,
    teamsWebhook: `${url}/teams/${invoke}?${new URLSearchParams(run).toString()}`,
    telegram: `${url}/telegram`,
    line: `${url}/line`,
    whatsapp: `${url}/whatsapp`,
  };
}

export type Urls = ReturnType<typeof urlsOf>;

export function credentialsOf({ x, meta, telegram, line, whatsapp }: World) {
  return {
    xClientId: x.clientId,
    /** Undefined: a public client. */
    xClientSecret: x.app.publicClient === true ? undefined : x.clientSecret,
    metaPixelId: meta.pixelId,
    metaAccessToken: meta.accessToken,
    telegramBotToken: telegram.botToken,
    telegramChatId: telegram.chatId,
    lineAccessToken: line.accessToken,
    lineTo: line.to,
    whatsappAccessToken: whatsapp.accessToken,
    whatsappPhoneNumberId: whatsapp.phoneNumberId,
    whatsappTo: whatsapp.to,
  };
}

export type Credentials = ReturnType<typeof credentialsOf>;

/** The networks of which a service uses one at a time; Slack and Telegram where nothing is said. */
export interface Choice {
  readonly chat?: "slack" | "discord" | "google_chat" | "teams";
  readonly messaging?: "telegram" | "line" | "whatsapp";
}

type Settings = Record<string, string>;

interface Place {
  readonly urls: Urls;
  readonly credentials: Credentials;
}

/** The environment that points a service at a sandbox. */
export function settingsOf({ urls, credentials }: Place, choice: Choice = {}): Settings {
  const { chat = "slack", messaging = "telegram" } = choice;
  const webhooks = {
    slack: urls.slackWebhook,
    discord: urls.discordWebhook,
    google_chat: urls.googleChatWebhook,
    teams: urls.teamsWebhook,
  };
  return {
    X_CLIENT_ID: credentials.xClientId,
    ...(credentials.xClientSecret === undefined ? {} : { X_CLIENT_SECRET: credentials.xClientSecret }),
    X_API_URL: urls.xApi,
    X_AUTHORIZE_URL: urls.xAuthorize,
    META_PIXEL_ID: credentials.metaPixelId,
    META_ACCESS_TOKEN: credentials.metaAccessToken,
    META_API_URL: urls.meta,
    CHAT_PROVIDER: chat,
    CHAT_WEBHOOK_URL: webhooks[chat],
    MESSAGING_PROVIDER: messaging,
    ...messengersOf({ urls, credentials })[messaging],
  };
}

function messengersOf({ urls, credentials }: Place): Record<NonNullable<Choice["messaging"]>, Settings> {
  return {
    telegram: {
      TELEGRAM_BOT_TOKEN: credentials.telegramBotToken,
      TELEGRAM_CHAT_ID: credentials.telegramChatId,
      TELEGRAM_API_URL: urls.telegram,
    },
    line: {
      LINE_CHANNEL_ACCESS_TOKEN: credentials.lineAccessToken,
      LINE_TO: credentials.lineTo,
      LINE_API_URL: urls.line,
    },
    whatsapp: {
      WHATSAPP_ACCESS_TOKEN: credentials.whatsappAccessToken,
      WHATSAPP_PHONE_NUMBER_ID: credentials.whatsappPhoneNumberId,
      WHATSAPP_TO: credentials.whatsappTo,
      WHATSAPP_API_URL: urls.whatsapp,
    },
  };
}
