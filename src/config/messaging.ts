import { secret } from "../platform/secret.ts";
import { requireAllOrNone, readSetting, type RawEnvironment } from "./environment.ts";
import type { Report } from "./error.ts";
import { variables, type Environment, type Variable } from "./schema.ts";
import { readUrl } from "./urls.ts";

type MessagingProvider = Environment["MESSAGING_PROVIDER"];

export type MessagingConfig = NonNullable<ReturnType<typeof readMessaging>>;

const CREDENTIALS = {
  telegram: ["TELEGRAM_BOT_TOKEN", "TELEGRAM_CHAT_ID"],
  line: ["LINE_CHANNEL_ACCESS_TOKEN", "LINE_TO"],
  whatsapp: ["WHATSAPP_ACCESS_TOKEN", "WHATSAPP_PHONE_NUMBER_ID", "WHATSAPP_TO"],
} as const satisfies Record<MessagingProvider, readonly Variable[]>;

/** Addresses are checked even when nothing uses them: a fault found early is cheaper. */
export function readMessaging(values: Environment, env: RawEnvironment, report: Report) {
  const provider = values.MESSAGING_PROVIDER;
  const apiUrls = {
    telegram: readUrl("TELEGRAM_API_URL", values.TELEGRAM_API_URL, report),
    line: readUrl("LINE_API_URL", values.LINE_API_URL, report),
    whatsapp: readUrl("WHATSAPP_API_URL", values.WHATSAPP_API_URL, report),
  };
  requireAllOrNone(CREDENTIALS[provider], env, report);
  warnOfOthers(provider, env, report);
  const config = { telegram: readTelegram, line: readLine, whatsapp: readWhatsapp }[provider](
    values,
    apiUrls[provider],
  );
  if (config === undefined && readSetting(env, "MESSAGING_PROVIDER") !== undefined) {
    report.warn(`MESSAGING_PROVIDER has no effect: ${CREDENTIALS[provider].join(" and ")} are not set.`);
  }
  return config;
}

function readTelegram(values: Environment, apiUrl: string) {
  const { TELEGRAM_BOT_TOKEN: token, TELEGRAM_CHAT_ID: chatId } = values;
  if (token === undefined || chatId === undefined) return undefined;
  return { provider: "telegram" as const, botToken: secret(token), chatId, apiUrl };
}

function readLine(values: Environment, apiUrl: string) {
  const { LINE_CHANNEL_ACCESS_TOKEN: token, LINE_TO: to } = values;
  if (token === undefined || to === undefined) return undefined;
  return { provider: "line" as const, accessToken: secret(token), to, apiUrl };
}

function readWhatsapp(values: Environment, apiUrl: string) {
  const { WHATSAPP_ACCESS_TOKEN: token, WHATSAPP_PHONE_NUMBER_ID: phoneNumberId, WHATSAPP_TO: to } = values;
  if (token === undefined || phoneNumberId === undefined || to === undefined) return undefined;
  return { provider: "whatsapp" as const, accessToken: secret(token), phoneNumberId, to, apiUrl };
}

/** Only one provider is used; an operator who configures a second would wait for its messages. */
function warnOfOthers(provider: MessagingProvider, env: RawEnvironment, report: Report): void {
  const isOthers = (name: string): boolean =>
    Object.keys(CREDENTIALS).some((other) => other !== provider && name.startsWith(`${other.toUpperCase()}_`));
  for (const name of [...variables.keys()].filter((key) => isOthers(key) && readSetting(env, key) !== undefined)) {
    report.warn(`${name} has no effect: MESSAGING_PROVIDER is ${provider}.`);
  }
}
