import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { readStableKey, type StableKeyPurpose } from "../vault/stable-keys.ts";
import { openMasterKey, type MasterKeyOptions } from "../vault/master-key.ts";
import { createOAuth, type OAuth } from "../account/oauth.ts";
import { makeId, systemClock, type Clock } from "../platform/clock.ts";
import type { Config } from "../config/config.ts";
import type { ChatConfig } from "../config/chat.ts";
import type { MessagingConfig } from "../config/messaging.ts";
import type { ChatProvider } from "../config/webhook.ts";
import { logFiles } from "../log/log-files.ts";
import { createDiscordChannel } from "../networks/discord.ts";
import { createGoogleChatChannel } from "../networks/google-chat.ts";
import { createLineChannel } from "../networks/line.ts";
import { createMetaChannel } from "../networks/meta.ts";
import type { Channel, SocialNetwork } from "../networks/network.ts";
import { createSafeFetch, type SafeFetch } from "../networks/safe-fetch.ts";
import { createSlackChannel } from "../networks/slack.ts";
import { createTeamsChannel } from "../networks/teams.ts";
import { createTelegramChannel } from "../networks/telegram.ts";
import { createWhatsappChannel } from "../networks/whatsapp.ts";
import { createX } from "../networks/x.ts";
import { rewrapKeys } from "../privacy/rewrap.ts";
import type { Rotation } from "../vault/vault.ts";
import { openEncryptedLog, type EncryptedLog, type EncryptedLogOptions } from "../privacy/encrypted-log.ts";

export interface OpenLogOptions extends Pick<EncryptedLogOptions, "owner" | "acceptLostKeys"> {
  /** Time as the machine has it, where nothing else is given. */
  readonly clock?: Clock;
}

/** Opens the configured log and the keys of its personal data. */
export function openLog(config: Config, options: OpenLogOptions = {}): Promise<EncryptedLog> {
  const { file } = config.log;
  mkdirSync(dirname(file), { recursive: true });
  const keysFile = keysFileOf(config);
  // Before any file is made: beside files that it sealed, a lost master key is not made anew.
  openKey(config);
  return openEncryptedLog({ file, keysFile, master: () => openKey(config), clock: systemClock, makeId, ...options });
}

/** Where the keys of personal data are: beside the log, or wherever their own backups are short-lived. */
export function keysFileOf({ log }: Config): string {
  return log.keysFile ?? logFiles(log.file).keys;
}

/** The master key: as configured, or that of the key file beside the log, made at the first start. */
export function openKey(config: Config): Uint8Array {
  return openMasterKey(masterKeyOf(config));
}

/** Where the master key is, and what is sealed with it. */
export function masterKeyOf(config: Config): MasterKeyOptions {
  const keysFile = keysFileOf(config);
  const rewrap = (rotation: Rotation): void => rewrapKeys(keysFile, rotation);
  return { files: logFiles(config.log.file), keysFile, rewrap, configured: config.key };
}

/** A key that stays the same when the master key is exchanged. */
export function openStableKey(config: Config, purpose: StableKeyPurpose): Uint8Array {
  return readStableKey(logFiles(config.log.file).vault, openKey(config), purpose);
}

/** The one way out, open to the configured networks only. */
export function outbound({ x, meta, chat, messaging }: Config): SafeFetch {
  const urls = [x?.apiUrl, meta?.apiUrl, chat?.webhookUrl.reveal(), messaging?.apiUrl];
  return createSafeFetch({ allowedOrigins: urls.filter((url) => url !== undefined) });
}

/** The channels that have credentials. */
export function openChannels(config: Config, safeFetch: SafeFetch): readonly Channel[] {
  const { meta, chat, messaging } = config;
  const channels: Channel[] = [];
  if (meta !== undefined) channels.push(createMetaChannel({ ...meta, baseUrl: meta.apiUrl, safeFetch }));
  if (chat !== undefined) channels.push(CHATS[chat.provider]({ webhookUrl: chat.webhookUrl, safeFetch }));
  if (messaging !== undefined) channels.push(openMessaging(messaging, safeFetch));
  return channels;
}

/** Each chat is reached by a webhook whose address is all that there is to know. */
const CHATS: Readonly<
  Record<ChatProvider, (options: { webhookUrl: ChatConfig["webhookUrl"]; safeFetch: SafeFetch }) => Channel>
> = {
  slack: createSlackChannel,
  discord: createDiscordChannel,
  google_chat: createGoogleChatChannel,
  teams: createTeamsChannel,
};

function openMessaging(config: MessagingConfig, safeFetch: SafeFetch): Channel {
  const baseUrl = config.apiUrl;
  switch (config.provider) {
    case "telegram":
      return createTelegramChannel({ ...config, baseUrl, safeFetch });
    case "line":
      return createLineChannel({ ...config, baseUrl, safeFetch });
    case "whatsapp":
      return createWhatsappChannel({ ...config, baseUrl, safeFetch });
  }
}

/** The social network and its OAuth, where configured. */
export function openSocial(
  config: Config,
  publicUrl: string,
  safeFetch: SafeFetch,
  clock: Clock,
): { readonly network: SocialNetwork; readonly oauth: OAuth } | undefined {
  const { x } = config;
  if (x === undefined) return undefined;
  const redirectUri = `${publicUrl}/social/callback`;
  return {
    network: createX({ apiUrl: x.apiUrl, safeFetch, clock }),
    oauth: createOAuth({ ...x, redirectUri, safeFetch, clock }),
  };
}
