import type { Sandbox } from "./sandbox.ts";

/** The environment that points a service at this sandbox. */
export function settingsOf({ url, x, meta, slack, telegram }: Sandbox): Record<string, string> {
  return {
    X_CLIENT_ID: x.clientId,
    X_CLIENT_SECRET: x.clientSecret,
    X_API_URL: `${url}/x`,
    X_AUTHORIZE_URL: `${url}/x-web/i/oauth2/authorize`,
    META_PIXEL_ID: meta.pixelId,
    META_ACCESS_TOKEN: meta.accessToken,
    META_API_URL: `${url}/meta`,
    CHAT_WEBHOOK_URL: `${url}/slack${slack.path}`,
    TELEGRAM_BOT_TOKEN: telegram.botToken,
    TELEGRAM_CHAT_ID: telegram.chatId,
    TELEGRAM_API_URL: `${url}/telegram`,
  };
}
