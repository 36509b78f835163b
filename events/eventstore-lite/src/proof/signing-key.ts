import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { closeSync, existsSync, fstatSync, openSync, readFileSync } from "node:fs";
import { SigningKeyRefused } from "../errors.ts";
import { makePrivateFile } from "../write-private-file-durably.ts";
import { decodeBase64, formatVerifierKey, rawPublicKey, type Cosigner } from "./signed-note.ts";

/** Ed25519 key pair that signs the checkpoints of a log (RFC 8032). */
export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const OTHERS = 0o077;
const PUBLIC_KEY_BYTES = 32;

/**
 * Reads the key that signs a log's checkpoints, and creates it if there is none: PKCS#8 in PEM (RFC 5958, RFC 7468).
 * Throws {@link SigningKeyRefused} if others than the file's owner can read it, or if it is no Ed25519 key.
 */
export function loadSigningKey(file: string): SigningKey {
  if (!existsSync(file)) makeSigningKey(file);
  const privateKey = parsePrivateKey(readOwn(file), file);
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** Beginning of an Ed25519 key in PKCS#8 (RFC 8410); the 32 bytes of the seed follow. */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");

/**
 * Returns the key made from 32 secret bytes, for a log that has no file for its key. The same bytes give the same key.
 */
export function signingKeyOf(seed: Uint8Array): SigningKey {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: "der", type: "pkcs8" });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

function readOwn(file: string): string {
  const descriptor = openSync(file, "r");
  try {
    const mode = fstatSync(descriptor).mode & 0o777;
    if ((mode & OTHERS) !== 0) {
      throw new SigningKeyRefused(
        `${file} has mode ${mode.toString(8).padStart(4, "0")}: a key that others can read proves nothing. ` +
          "If nobody did, run chmod 600 on it; if somebody may have, move it and the checkpoints away",
      );
    }
    return readFileSync(descriptor, "utf8");
  } finally {
    closeSync(descriptor);
  }
}

function parsePrivateKey(pem: string, file: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    // The error leaves out OpenSSL's message, which could quote the file.
    throw new SigningKeyRefused(`${file} holds no private key in PEM`);
  }
  if (key.asymmetricKeyType !== "ed25519") throw new SigningKeyRefused(`${file} holds no Ed25519 key`);
  return key;
}

/**
 * Creates the file of a signing key, which appears whole or not at all. If two processes create it at once, one wins.
 */
function makeSigningKey(file: string): void {
  const { privateKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  // The key is written durably: if a power cut lost it, no checkpoint could be checked any more.
  makePrivateFile(file, privateKey);
}

/** The public key as auditors keep it: the base64 of its 32 bytes. */
export function formatPublicKey(key: KeyObject): string {
  return rawPublicKey(key).toString("base64");
}

/** Throws {@link SigningKeyRefused} unless {@link formatPublicKey} could have made `text`. */
export function parsePublicKey(text: string): KeyObject {
  const bytes = decodeBase64(text);
  if (bytes?.length !== PUBLIC_KEY_BYTES) {
    throw new SigningKeyRefused(`a public key is the base64 of ${PUBLIC_KEY_BYTES} bytes`);
  }
  try {
    return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") }, format: "jwk" });
  } catch {
    // The bytes are no valid key. Deno rejects them, but Bun and Node accept them as a key that verifies no signature;
    // a new random key has the same effect.
    return generateKeyPairSync("ed25519").publicKey;
  }
}

/**
 * Parses the text of a public key that {@link formatVerifierKey} made. Throws {@link SigningKeyRefused} for any other
 * text.
 */
export function parseVerifierKey(text: string): Cosigner {
  const [, name = "", key = ""] = /^([^+\s]+)\+[0-9a-f]{8}\+(.+)$/u.exec(text) ?? [];
  const typed = decodeBase64(key);
  if (typed?.length === 1 + PUBLIC_KEY_BYTES) {
    const cosigner = { name, publicKey: parsePublicKey(typed.subarray(1).toString("base64")) };
    // If the text is what formatVerifierKey writes, its type and key id are right too.
    if (formatVerifierKey(cosigner) === text) return cosigner;
  }
  throw new SigningKeyRefused("a witness's key is NAME+ID+KEY, as reachlog witness serve prints it");
}
