import { createHash, type KeyObject, sign, verify } from "node:crypto";
import { CheckpointRefused } from "../errors.ts";

/**
 * Maximum number of characters of a note. https://c2sp.org/signed-note requires room for 16 signatures, and the longest
 * known kind takes 5 kB in base64.
 */
const NOTE_CHARS_MAX = 128 * 1024;

/** Maximum number of signatures of a note, as in Go's implementation of the format. */
const SIGNATURES_MAX = 100;

const KEY_ID_BYTES = 4;
const SIGNATURE_BYTES = 64;

/** Signature type of Ed25519 over the note's text. */
const ED25519 = 0x01;

/** Signature type of a timestamped Ed25519 cosignature. */
const COSIGNATURE = 0x04;
const TIME_BYTES = 8;

// Matches the control characters that the specification forbids in a note: all but line feeds.
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f]/;

/**
 * Line of a note with one signature: an em dash, the key's name (no spaces, no plus), then key id and signature in
 * base64.
 */
const SIGNATURE_LINE = /^\u2014 ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/u;

export const KEY_NAME: RegExp = /^[^\s+]+$/u;

/** The text of a note and the signatures that it claims; nothing of it is verified yet. */
export interface Note {
  /** Signed text of the note, with its last line feed. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly bytes: Buffer }[];
}

/**
 * Signs `text`, which ends in a line feed, in the form of https://c2sp.org/signed-note: the text, an empty line, and
 * `— NAME base64(key id ‖ Ed25519 signature)`.
 */
export function signNote(text: string, name: string, privateKey: KeyObject, publicKey: KeyObject): string {
  const signature = sign(null, Buffer.from(text), privateKey);
  const line = Buffer.concat([keyId(name, publicKey), signature]).toString("base64");
  return `${text}\n\u2014 ${name} ${line}\n`;
}

/** Parses a note. Throws {@link CheckpointRefused} if it is malformed. */
export function parseNote(note: string): Note {
  if (note.length > NOTE_CHARS_MAX) throw malformed("it is too long");
  if (!note.isWellFormed() || CONTROL.test(note)) throw malformed("it holds control characters");
  // The text may hold empty lines; the signatures follow the last one.
  const end = note.lastIndexOf("\n\n");
  const lines = note.slice(end + 2).split("\n");
  if (end === -1 || lines.pop() !== "" || lines.length === 0) throw malformed("it has no signature");
  if (lines.length > SIGNATURES_MAX) throw malformed("it has too many signatures");
  return { text: note.slice(0, end + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line: string): Note["signatures"][number] {
  const [, name, base64] = SIGNATURE_LINE.exec(line) ?? [];
  const bytes = decodeBase64(base64 ?? "");
  if (name === undefined || bytes === undefined || bytes.length <= KEY_ID_BYTES) {
    throw malformed("a line after the empty one is no signature");
  }
  return { name, bytes };
}

/**
 * True if the key signed the note under that name. Signatures of other keys are skipped; of several by this key the
 * first one decides.
 */
export function isSignedBy({ text, signatures }: Note, name: string, publicKey: KeyObject): boolean {
  const id = keyId(name, publicKey);
  const own = signatures.find((one) => one.name === name && one.bytes.subarray(0, KEY_ID_BYTES).equals(id));
  const signature = own?.bytes.subarray(KEY_ID_BYTES);
  return signature?.length === SIGNATURE_BYTES && verify(null, Buffer.from(text), publicKey, signature);
}

/**
 * Returns the id of a key in notes: the first four bytes of SHA-256(name ‖ line feed ‖ signature type ‖ public key).
 */
function keyId(name: string, publicKey: KeyObject, type = ED25519): Buffer {
  const hash = createHash("sha256").update(`${name}\n`).update(Buffer.of(type)).update(rawPublicKey(publicKey));
  return hash.digest().subarray(0, KEY_ID_BYTES);
}

/** Name and public key of a witness, which cosigns the heads of logs. */
export interface Cosigner {
  readonly name: string;
  readonly publicKey: KeyObject;
}

/**
 * Returns the text that a witness signs in a https://c2sp.org/tlog-cosignature of version 1. It includes the time of
 * signing, in seconds.
 */
function cosigned(text: string, time: bigint): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);
}

/** Returns a signature line of a witness; `time` in seconds since 1970. */
export function cosign(text: string, { name, publicKey }: Cosigner, privateKey: KeyObject, time: number): string {
  const stamp = Buffer.alloc(TIME_BYTES);
  stamp.writeBigUInt64BE(BigInt(time));
  const signature = sign(null, cosigned(text, BigInt(time)), privateKey);
  const line = Buffer.concat([keyId(name, publicKey, COSIGNATURE), stamp, signature]).toString("base64");
  return `\u2014 ${name} ${line}\n`;
}

/** Returns the time at which the witness cosigned the note, in seconds since 1970; undefined if it did not. */
export function cosignedAt({ text, signatures }: Note, { name, publicKey }: Cosigner): number | undefined {
  const id = keyId(name, publicKey, COSIGNATURE);
  for (const { bytes } of signatures.filter(
    (one) => one.name === name && one.bytes.subarray(0, KEY_ID_BYTES).equals(id),
  )) {
    if (bytes.length !== KEY_ID_BYTES + TIME_BYTES + SIGNATURE_BYTES) continue;
    const time = bytes.readBigUInt64BE(KEY_ID_BYTES);
    if (verify(null, cosigned(text, time), publicKey, bytes.subarray(KEY_ID_BYTES + TIME_BYTES))) return Number(time);
  }
  return undefined;
}

/** Formats the key of a witness like https://c2sp.org/signed-note: name, key id and typed key, joined by plus signs. */
export function formatVerifierKey({ name, publicKey }: Cosigner): string {
  const typed = Buffer.concat([Buffer.of(COSIGNATURE), rawPublicKey(publicKey)]).toString("base64");
  return `${name}+${keyId(name, publicKey, COSIGNATURE).toString("hex")}+${typed}`;
}

/** Returns the 32 bytes of an Ed25519 public key, as RFC 8032 defines them. */
export function rawPublicKey(publicKey: KeyObject): Buffer {
  return Buffer.from(String(publicKey.export({ format: "jwk" }).x), "base64url");
}

/** Decodes a text that is the canonical base64 of its bytes (RFC 4648, section 4). Undefined for any other text. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}

export function malformed(why: string): CheckpointRefused {
  return new CheckpointRefused("malformed", `the checkpoint cannot be read: ${why}`);
}
