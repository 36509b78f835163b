import { expect, test } from "bun:test";
import {
  formatPublicKey,
  loadSigningKey,
  openCheckpoint,
  parsePublicKey,
  signCheckpoint,
  SigningKeyRefused,
} from "eventstore-lite/proof";
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();

const newKeyPath = () => join(dirname(newLogPath()), "log.signing.pem");

/** Returns the message of the error with which a signing key is refused. */
function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof SigningKeyRefused) return error.message;
    throw error;
  }
  throw new Error("it was taken");
}

test("the key is created once, in a file readable by its owner only", () => {
  const file = newKeyPath();
  const made = loadSigningKey(file);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(dirname(file))).toEqual(["log.signing.pem"]);
  expect(readFileSync(file, "utf8")).toStartWith("-----BEGIN PRIVATE KEY-----\n");
  expect(loadSigningKey(file).publicKey.equals(made.publicKey)).toBe(true);
  expect(loadSigningKey(newKeyPath()).publicKey.equals(made.publicKey)).toBe(false);
});

test("a key file that other users can access is refused with its mode", () => {
  const file = newKeyPath();
  loadSigningKey(file);
  for (const mode of [0o644, 0o640, 0o620, 0o601]) {
    chmodSync(file, mode);
    expect(refusal(() => loadSigningKey(file))).toMatch(`${file} has mode 0${mode.toString(8)}`);
  }
  chmodSync(file, 0o400);
  loadSigningKey(file);
});

test("a file without an Ed25519 key is refused without quoting it", () => {
  const file = newKeyPath();
  writeFileSync(file, "secret words", { mode: 0o600 });
  expect(refusal(() => loadSigningKey(file))).toBe(`${file} holds no private key in PEM`);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(file, privateKey.export({ type: "pkcs8", format: "pem" }));
  expect(refusal(() => loadSigningKey(file))).toBe(`${file} holds no Ed25519 key`);
});

test("an auditor verifies a checkpoint with the public key as text", () => {
  const key = loadSigningKey(newKeyPath());
  const text = formatPublicKey(key.publicKey);
  expect(text).toMatch(/^[\w+/]{43}=$/);
  const note = signCheckpoint({ origin: "log", position: 0, hash: "00".repeat(32), time: undefined }, key);
  expect(openCheckpoint(note, parsePublicKey(text)).position).toBe(0);
});

test.each(["", "AAAA", "not base64", `${"A".repeat(42)}9=`, "00".repeat(32)])(
  "the invalid public key %j is refused",
  (text) => {
    expect(refusal(() => parsePublicKey(text))).toContain("base64 of 32 bytes");
  },
);
