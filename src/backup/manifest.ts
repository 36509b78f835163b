import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { SigningKey } from "eventstore-lite/proof";
import { ServiceError } from "../platform/service-error.ts";
import { encrypt, open } from "../vault/encrypt.ts";
import { deriveKey, damaged, keyId, KeyMismatch } from "../vault/derive-keys.ts";
import { withPath } from "../platform/describe-system-errors.ts";

/** File names in a backup, except that of its manifest. */
export const NAMES = {
  log: "log.sqlite",
  vault: "vault.sqlite",
  /** File with the keys of personal data. */
  keys: "keys.sqlite",
  /** File with the head (newest position and hash) of the copied log, as a signed note. */
  head: "head.txt",
  /** File with the key that signed the head; only the master key opens it. */
  signingKey: "signing-key.encrypted",
} as const;

export type BackupFile = keyof typeof NAMES;

/** Files of a backup other than the log, in the order of the manifest. */
export const SECRET_FILES = ["vault", "keys", "head", "signingKey"] as const satisfies readonly BackupFile[];

export const MANIFEST = "manifest.json";

export const copied = Type.Object({
  bytes: Type.Integer({ minimum: 0 }),
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
});

const manifestSchema = Type.Object({
  format: Type.Literal(1),
  /** Version of reachlog that made the backup. */
  version: Type.String(),
  made_at: Type.String(),
  log: Type.Object({ id: Type.String(), position: Type.Integer({ minimum: 0 }), hash: Type.String() }),
  /** Id of the master key that opens the backup. */
  master_key: Type.String(),
  files: Type.Object({ log: copied, vault: copied, keys: copied, head: copied, signingKey: copied }),
  /** HMAC of all other fields of the manifest, in base64url. */
  mac: Type.String(),
});

/** Manifest of a whole backup. Written last: a folder without a manifest is not a backup. */
export type Manifest = Static<typeof manifestSchema>;

export type Copied = Static<typeof copied>;

/**
 * Signs a backup's manifest with the master key. The signature also protects what the hash chain and the encryption do
 * not: idempotency keys, states of projections, and statements that the database engine executes.
 */
export function signManifest<Signed extends { mac: string }>(manifest: Omit<Signed, "mac">, master: Uint8Array) {
  const unsigned = { ...manifest, mac: "" };
  const mac = createHmac("sha256", deriveKey(master, "backup-manifest")).update(JSON.stringify(unsigned));
  return { ...unsigned, mac: mac.digest("base64url") };
}

/**
 * Reads the manifest of a whole backup without checking its signature. Throws a ServiceError (invalid), or the system's
 * error.
 */
export function readManifest(folder: string): Manifest {
  return decodeManifest(folder, manifestSchema);
}

/**
 * Reads a backup's manifest by the given schema, without checking its signature. Throws a ServiceError (invalid), or
 * the system's error.
 */
export function decodeManifest<Schema extends TSchema>(folder: string, schema: Schema): Static<Schema> {
  const path = join(folder, MANIFEST);
  const text = withPath(path, () => readFileSync(path, "utf8"));
  try {
    return Value.Decode(schema, JSON.parse(text));
  } catch (cause) {
    throw new ServiceError("invalid", `${path} is not a backup manifest that this version can read`, { cause });
  }
}

/**
 * Throws a ServiceError (configuration, invalid) unless a holder of the given master key wrote the backup's manifest.
 */
export function refuseForged(
  folder: string,
  manifest: { readonly master_key: string; readonly mac: string },
  master: Uint8Array,
): void {
  if (keyId(master) !== manifest.master_key) throw new KeyMismatch(folder, keyId(master), [manifest.master_key]);
  if (signManifest(manifest, master).mac !== manifest.mac) {
    throw new ServiceError("invalid", `${join(folder, MANIFEST)} was not written by reachlog backup, or altered since`);
  }
}

/**
 * Purpose of the key, derived from the master key, that encrypts the signing key in a backup. Outside of backups the
 * signing key is a plain file that only its owner can read.
 */
const PURPOSE = "backup";

/** Encrypts the key that signs the heads of a log, for a backup. `log`: the id of that log. */
export function encryptSigningKey({ privateKey }: SigningKey, master: Uint8Array, log: string): Buffer {
  return encrypt(deriveKey(master, PURPOSE), privateKey.export({ type: "pkcs8", format: "pem" }), log);
}

/**
 * Decrypts the signing key in a backup, and returns it in PEM. Throws a ServiceError (damaged) in which `place` names
 * the file.
 */
export function openSigningKey(encrypted: Uint8Array, master: Uint8Array, log: string, place: string): string {
  const pem = open(deriveKey(master, PURPOSE), encrypted, log);
  if (pem === undefined) throw damaged(place, "the key that signs heads");
  return pem;
}
