import type { World } from "./world.ts";

/** Where the networks are, as a service is configured. */
export interface Urls {
  readonly xApi: string;
  readonly xAuthorize: string;
  readonly meta: string;
  readonly slackWebhook: string;
  readonly telegram: string;
}

export interface Credentials {
  readonly xClientId: string;
  /** Undefined: a public client. */
  readonly xClientSecret: string | undefined;
  readonly metaPixelId: string;
  readonly metaAccessToken: string;
  readonly telegramBotToken: string;
  readonly telegramChatId: string;
}

type Networks = Pick<World, "x" | "meta" | "slack" | "telegram">;

export function urlsOf(url: string, { slack }: Networks): Urls {
  return {
    xApi: `${url}/x`,
    xAuthorize: `${url}/x-web/i/oauth2/authorize`,
    meta: `${url}/meta`,
    slackWebhook: `${url}/slack${slack.path}`,
    telegram: `${url}/telegram`,
  };
}

export function credentialsOf({ x, meta, telegram }: Networks): Credentials {
  return {
    xClientId: x.clientId,
    xClientSecret: x.app.publicClient === true ? undefined : x.clientSecret,
    metaPixelId: meta.pixelId,
    metaAccessToken: meta.accessToken,
    telegramBotToken: telegram.botToken,
    telegramChatId: telegram.chatId,
  };
}

/** The environment that points a service at a sandbox. */
export function settingsOf(sandbox: { urls: Urls; credentials: Credentials }): Record<string, string> {
  const { urls, credentials } = sandbox;
  return {
    X_CLIENT_ID: credentials.xClientId,
    ...(credentials.xClientSecret === undefined ? {} : { X_CLIENT_SECRET: credentials.xClientSecret }),
    X_API_URL: urls.xApi,
    X_AUTHORIZE_URL: urls.xAuthorize,
    META_PIXEL_ID: credentials.metaPixelId,
    META_ACCESS_TOKEN: credentials.metaAccessToken,
    META_API_URL: urls.meta,
    CHAT_WEBHOOK_URL: urls.slackWebhook,
    TELEGRAM_BOT_TOKEN: credentials.telegramBotToken,
    TELEGRAM_CHAT_ID: credentials.telegramChatId,
    TELEGRAM_API_URL: urls.telegram,
  };
}
