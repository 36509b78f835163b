import { createClock } from "./clock.ts";
import { createWorld, type World } from "./world.ts";

/** Returns the addresses of the simulated networks, for a service's settings. */
export function urlsOf(url: string, { slack, discord, googleChat, teams }: World) {
  const { space, key, token } = googleChat;
  const invoke = `workflows/${teams.workflow}/triggers/manual/paths/invoke`;
  const run = { "api-version": "2016-06-01", sp: "/triggers/manual/run", sv: "1.0", sig: teams.signature };
  return {
    xApi: `${url}/x`,
    xAuthorize: `${url}/x-web/i/oauth2/authorize`,
    meta: `${url}/meta`,
    openai: `${url}/openai`,
    snap: `${url}/snap`,
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

export function credentialsOf({ x, meta, openai, snap, telegram, line, whatsapp }: World) {
  return {
    xClientId: x.clientId,
    /** Client secret of the app at X; undefined for a public client, which has none. */
    xClientSecret: x.app.publicClient === true ? undefined : x.clientSecret,
    /**
     * The app's own bearer token, with which a service opens X's activity stream. `settingsOf` does not include it; a
     * caller that wants the stream adds it to the settings.
     */
    xAppBearer: x.appBearer,
    metaPixelId: meta.pixelId,
    metaAccessToken: meta.accessToken,
    openAiPixelId: openai.pixelId,
    openAiAccessToken: openai.accessToken,
    snapPixelId: snap.pixelId,
    snapAccessToken: snap.accessToken,
    telegramBotToken: telegram.botToken,
    telegramChatId: telegram.chatId,
    lineAccessToken: line.accessToken,
    lineTo: line.to,
    whatsappAccessToken: whatsapp.accessToken,
    whatsappPhoneNumberId: whatsapp.phoneNumberId,
    whatsappTo: whatsapp.to,
    /**
     * Secrets of WhatsApp's webhook for message statuses. `settingsOf` does not include them; a caller that wants the
     * webhook adds them to the settings.
     */
    whatsappAppSecret: whatsapp.appSecret,
    whatsappVerifyToken: whatsapp.verifyToken,
  };
}

export type Credentials = ReturnType<typeof credentialsOf>;

type Settings = Record<string, string>;

interface Place {
  readonly urls: Urls;
  readonly credentials: Credentials;
}

/** Chat networks, of which a service uses one at a time -> the settings that connect it. */
const CHATS = {
  slack: ({ urls }: Place): Settings => ({ CHAT_WEBHOOK_URL: urls.slackWebhook }),
  discord: ({ urls }: Place): Settings => ({ CHAT_WEBHOOK_URL: urls.discordWebhook }),
  google_chat: ({ urls }: Place): Settings => ({ CHAT_WEBHOOK_URL: urls.googleChatWebhook }),
  teams: ({ urls }: Place): Settings => ({ CHAT_WEBHOOK_URL: urls.teamsWebhook }),
};
const MESSENGERS = {
  telegram: ({ urls, credentials }: Place): Settings => ({
    TELEGRAM_BOT_TOKEN: credentials.telegramBotToken,
    TELEGRAM_CHAT_ID: credentials.telegramChatId,
    TELEGRAM_API_URL: urls.telegram,
  }),
  line: ({ urls, credentials }: Place): Settings => ({
    LINE_CHANNEL_ACCESS_TOKEN: credentials.lineAccessToken,
    LINE_TO: credentials.lineTo,
    LINE_API_URL: urls.line,
  }),
  whatsapp: ({ urls, credentials }: Place): Settings => ({
    WHATSAPP_ACCESS_TOKEN: credentials.whatsappAccessToken,
    WHATSAPP_PHONE_NUMBER_ID: credentials.whatsappPhoneNumberId,
    WHATSAPP_TO: credentials.whatsappTo,
    WHATSAPP_API_URL: urls.whatsapp,
  }),
};

/**
 * A service may use any of these ads networks in addition to Meta, and all at once. Each function returns the settings
 * that connect the service to that network.
 */
const ADS = {
  openai: ({ urls, credentials }: Place): Settings => ({
    OPENAI_ADS_PIXEL_ID: credentials.openAiPixelId,
    OPENAI_ADS_API_KEY: credentials.openAiAccessToken,
    OPENAI_ADS_API_URL: urls.openai,
  }),
  snap: ({ urls, credentials }: Place): Settings => ({
    SNAP_PIXEL_ID: credentials.snapPixelId,
    SNAP_ACCESS_TOKEN: credentials.snapAccessToken,
    SNAP_API_URL: urls.snap,
  }),
};

export interface Choice {
  /** Ads networks that the service uses in addition to Meta. */
  readonly ads?: readonly (keyof typeof ADS)[];
  readonly chat?: keyof typeof CHATS;
  readonly messaging?: keyof typeof MESSENGERS;
}

/** Returns the environment variables that connect a service to a sandbox. */
export function settingsOf(place: Place, { ads = [], chat = "slack", messaging = "telegram" }: Choice = {}): Settings {
  const { urls, credentials } = place;
  return {
    X_CLIENT_ID: credentials.xClientId,
    ...(credentials.xClientSecret === undefined ? {} : { X_CLIENT_SECRET: credentials.xClientSecret }),
    X_API_URL: urls.xApi,
    X_AUTHORIZE_URL: urls.xAuthorize,
    META_PIXEL_ID: credentials.metaPixelId,
    META_ACCESS_TOKEN: credentials.metaAccessToken,
    META_API_URL: urls.meta,
    ...Object.assign({}, ...ads.map((name) => ADS[name](place))),
    CHAT_PROVIDER: chat,
    ...CHATS[chat](place),
    MESSAGING_PROVIDER: messaging,
    ...MESSENGERS[messaging](place),
  };
}

/**
 * Returns the environment variables that connect a service to a sandbox at `url`. The sandbox need not run, since its
 * credentials are always the same.
 */
export function settingsAt(url: string, choice?: Choice): Settings {
  const world = createWorld(createClock(Date.now), {});
  return settingsOf({ urls: urlsOf(url, world), credentials: credentialsOf(world) }, choice);
}
