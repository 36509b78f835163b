import { WEBHOOK_NAME_CHARS_MAX } from "../../events/channel-and-lane-names.ts";
import { secretFiles, settingNames } from "./schema.ts";

type RawEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Settings of the webhook without a name. A webhook with a name has the same ones with its name inserted:
 * `WEBHOOK_CRM_URL` for `WEBHOOK_URL`.
 */
const OWN_SETTINGS = [...settingNames].filter((name) => name.startsWith("WEBHOOK_"));

const NAMED = new RegExp(`^WEBHOOK_(.+)(?:${OWN_SETTINGS.map((name) => name.slice("WEBHOOK".length)).join("|")})$`);

/**
 * Words in names of webhook settings, such as URL, that a webhook's name may not contain: in a setting such as
 * `WEBHOOK_A_URL_SECRET`, it would be hard to tell where the name ends.
 */
const RESERVED: ReadonlySet<string> = new Set(OWN_SETTINGS.flatMap((name) => name.split("_").slice(1)));

/** Lists the names of webhooks for which `env` gives a setting, valid or not (see {@link isWebhookName}). */
export function listWebhookNames(env: RawEnvironment): readonly string[] {
  const set = Object.keys(env).filter((key) => (env[key] ?? "").trim() !== "");
  return [...new Set(set.flatMap((key) => NAMED.exec(key)?.[1] ?? []))].sort();
}

/** True if a webhook may have this name, such as `CRM` or `BILLING_EU`. */
export function isWebhookName(name: string): boolean {
  const words = name.split("_");
  const isShort = name.length <= WEBHOOK_NAME_CHARS_MAX;
  return isShort && words.every((word) => /^[A-Z0-9]+$/.test(word) && !RESERVED.has(word));
}

export const WANTED_NAME = `a name of 1 to ${WEBHOOK_NAME_CHARS_MAX} capital letters, digits and single underscores, without the words ${[...RESERVED].join(", ")}`;

/** Returns the setting of the webhook `name` that corresponds to `setting` of the webhook without a name. */
export function nameSetting(setting: string, name: string): string {
  return setting.replace("WEBHOOK_", `WEBHOOK_${name}_`);
}

/** The names of all settings, including those of the webhooks that `env` names. */
export function listSettings(env: RawEnvironment): ReadonlySet<string> {
  return new Set([
    ...settingNames,
    ...listWebhookNames(env).flatMap((name) => OWN_SETTINGS.map((one) => nameSetting(one, name))),
  ]);
}

/**
 * Lists pairs of a setting that names a file and the secret setting that the file holds, including those of the
 * webhooks that `env` names.
 */
export function listSecretFiles(env: RawEnvironment): readonly (readonly [file: string, setting: string])[] {
  const own = [...secretFiles].filter(([file]) => OWN_SETTINGS.includes(file));
  const named = listWebhookNames(env).flatMap((name) =>
    own.map(([file, setting]) => [nameSetting(file, name), nameSetting(setting, name)] as const),
  );
  return [...secretFiles, ...named];
}

/** Returns the settings of the webhook `name` under the names that settings of the webhook without a name have. */
export function unnamedEnvironment(env: RawEnvironment, name: string): RawEnvironment {
  return Object.fromEntries(OWN_SETTINGS.map((setting) => [setting, env[nameSetting(setting, name)]]));
}

/**
 * Replaces names of settings in a text, such as an error message: each setting of the unnamed webhook (`WEBHOOK_URL`)
 * becomes that of the webhook `name` (`WEBHOOK_CRM_URL`).
 */
export function nameSettingsIn(text: string, name: string): string {
  return OWN_SETTINGS.reduce(
    (said, setting) => said.replaceAll(new RegExp(`\\b${setting}\\b`, "g"), nameSetting(setting, name)),
    text,
  );
}
