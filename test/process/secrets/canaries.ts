import { createHash, randomBytes } from "node:crypto";
import { deriveKey } from "../../../src/vault/derive-keys.ts";
import { unwrap } from "../../../src/vault/encrypt.ts";
import { openSecretStore } from "../../../src/vault/secret-store.ts";
import { sqliteSecrets } from "../../../src/vault/sqlite-secrets.ts";
import type { LogFiles } from "../../../src/log/log-file-paths.ts";
import { keysIn } from "../../../src/privacy/key-store.ts";
import type { Sandbox } from "../../../sandbox/sandbox.ts";
import { credentialsOf, settingsOf, urlsOf, type Choice } from "../../../sandbox/service-settings.ts";
import { hunted, type Hunted } from "./search-bytes-for-secrets.ts";

/** Creates a unique secret: 256 random bits, in characters that any token may have. */
export function canary(): string {
  return randomBytes(32).toString("base64url");
}

/** Secrets in use, for which all outputs are searched. Grows as secrets are created. */
export type Canaries = Hunted[];

/** Gives the sandbox's networks secrets that are unique to this run. */
export function secureSandbox(sandbox: Sandbox, canaries: Canaries): void {
  const made = (name: string): string => {
    const value = canary();
    canaries.push(hunted(name, value));
    return value;
  };
  Object.assign(sandbox.x, { clientSecret: made("the app's secret") });
  Object.assign(sandbox.meta, { accessToken: made("Meta's token") });
  Object.assign(sandbox.slack, { path: `/services/T0/B0/${made("Slack's webhook")}` });
  Object.assign(sandbox.discord, { webhookToken: made("Discord's webhook") });
  Object.assign(sandbox.googleChat, { key: made("Google's key"), token: made("Google's token") });
  Object.assign(sandbox.teams, { signature: made("the signature of Teams") });
  Object.assign(sandbox.telegram, { botToken: `123456:${made("Telegram's token")}` });
  Object.assign(sandbox.line, { accessToken: made("LINE's token") });
  Object.assign(sandbox.whatsapp, { accessToken: made("WhatsApp's token") });
}

/** Returns settings of the service for the sandbox's networks, with their current credentials. */
export function settingsFor(sandbox: Sandbox, choice: Choice = {}): Record<string, string> {
  return settingsOf({ urls: urlsOf(sandbox.url, sandbox), credentials: credentialsOf(sandbox) }, choice);
}

/** Returns the settings that contain a secret, with wrong values of the right form. */
export function wrongSettings(settings: Readonly<Record<string, string>>, canaries: Canaries): Record<string, string> {
  const wrong = Object.entries(settings).flatMap(([name, value]) => {
    const known = canaries.find(({ bytes }) => value.includes(bytes.toString()));
    if (known === undefined) return [];
    const other = canary();
    canaries.push(hunted(`a wrong ${name}`, other));
    return [[name, value.replace(known.bytes.toString(), other)] as const];
  });
  return Object.fromEntries(wrong);
}

/**
 * Purposes for which the service derives keys from the master key. Each derived key opens something, so it is a secret
 * too.
 */
const PURPOSES = ["vault", "oauth-cookie", "console-session", "credentials", "suppression", "personal-keys"];

/** Returns the secrets to search for: a master key and all keys derived from it. */
export function huntedKeys(name: string, key: Uint8Array): Hunted[] {
  return [hunted(name, key), ...PURPOSES.map((purpose) => hunted(`${name} for ${purpose}`, deriveKey(key, purpose)))];
}

/** Number of bytes of a token's hash that are its id, which may be shown. */
const ID_BYTES = 6;

/** Returns the secrets to search for: a caller's token, and its hash, with which an attacker could check guesses. */
export function huntedToken(name: string, token: string): Hunted[] {
  const hash = createHash("sha256").update(token).digest();
  return [hunted(name, token), hunted(`the hash of ${name}`, hash.subarray(ID_BYTES))];
}

/** Returns the secrets to search for: the decrypted keys that the vault and the key file next to a log contain. */
export async function huntedFileKeys(
  { vault, keys }: Pick<LogFiles, "vault" | "keys">,
  master: Uint8Array,
): Promise<Hunted[]> {
  await using database = await sqliteSecrets(vault).open();
  await using secrets = await openSecretStore({ place: sqliteSecrets(keys), master });
  const found = [...(await keysIn(secrets).under(""))];
  const personal = found.flatMap(([ref, key]) => (key === "gone" ? [] : [hunted(`the key ${ref}`, key)]));
  if (personal.length === 0) throw new Error("nothing was encrypted");
  return [...personal, hunted("the vault's data key", unwrap(await database.dataKeys(), master, vault).bytes)];
}

/** Adds all tokens that X issues from now on to the secrets to search for, even tokens that are never used. */
export function huntGrants({ x }: Sandbox, canaries: Canaries): void {
  const issued: readonly (readonly [string, Map<string, unknown>])[] = [
    ["an access token", x.access],
    ["a refresh token", x.refresh],
    ["an authorization code", x.codes],
  ];
  for (const [name, map] of issued) {
    const set = map.set.bind(map);
    map.set = (value, grant) => {
      canaries.push(hunted(name, value));
      return set(value, grant);
    };
  }
}
