import { generateKeyPairSync, sign } from "node:crypto";

export interface SelfSigned {
  readonly cert: string;
  readonly key: string;
}

/** Creates a self-signed certificate (RFC 5280) for one IPv4 address, valid until `until` (ms since the epoch). */
export function selfSigned(address: string, until: number): SelfSigned {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = sequence(tag(0x31, sequence(COMMON_NAME, tag(0x0c, Buffer.from("reachlog test")))));
  const alternative = sequence(SUBJECT_ALT_NAME, tag(0x04, sequence(tag(0x87, octetsOf(address)))));
  const signed = sequence(
    tag(0xa0, integer(2)),
    integer(1),
    sequence(ECDSA_WITH_SHA256),
    name,
    sequence(time(until - YEAR_MS), time(until)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tag(0xa3, sequence(alternative)),
  );
  const signature = sign("sha256", signed, privateKey);
  const der = sequence(signed, sequence(ECDSA_WITH_SHA256), tag(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString("base64").replace(/.{64}/g, "$&\n");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }),
  };
}

const YEAR_MS = 365 * 24 * 3_600_000;

/** Object identifiers in DER. */
const COMMON_NAME = Buffer.from("0603550403", "hex");
const SUBJECT_ALT_NAME = Buffer.from("0603551d11", "hex");
const ECDSA_WITH_SHA256 = Buffer.from("06082a8648ce3d040302", "hex");

function tag(number: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([number, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tag(0x30, Buffer.concat(parts));
}

function integer(value: number): Buffer {
  return tag(0x02, Buffer.from([value]));
}

function time(ms: number): Buffer {
  return tag(0x18, Buffer.from(new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "")));
}

function octetsOf(address: string): Buffer {
  return Buffer.from(address.split(".").map(Number));
}
