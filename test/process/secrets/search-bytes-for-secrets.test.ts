// These tests call the code directly.
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { findSecrets, hunted } from "./search-bytes-for-secrets.ts";

const SECRET = `canary~${randomBytes(24).toString("base64url")}/+`;

const search = (text: string | Buffer) =>
  findSecrets([hunted("the canary", SECRET)], [{ where: "here", bytes: Buffer.from(text) }]);

test.each<[string, string | Buffer]>([
  ["plain", SECRET],
  ["a part", `…${SECRET.slice(9, 22)}…`],
  ["hex", Buffer.from(SECRET).toString("hex")],
  ["upper-case hex", Buffer.from(SECRET).toString("hex").toUpperCase()],
  ["UTF-16", Buffer.from(SECRET, "utf16le")],
  ["a URL", `https://x.example/?token=${encodeURIComponent(SECRET)}`],
  ["Basic", `Basic ${btoa(`client:${SECRET}`)}`],
  ["base64 after 1 byte", Buffer.from(`a${SECRET}`).toString("base64")],
  ["base64 after 2 bytes", Buffer.from(`ab${SECRET}`).toString("base64")],
  ["base64url after 3 bytes", Buffer.from(`abc${SECRET}`).toString("base64url")],
  ["JSON in JSON", JSON.stringify(JSON.stringify({ token: SECRET }))],
  ["among other bytes", Buffer.concat([randomBytes(100), Buffer.from(SECRET), randomBytes(100)])],
])("a secret is found as %s", (_form, text) => {
  expect(search(text)).not.toEqual([]);
});

test("random bytes contain no secret", () => {
  expect(search(randomBytes(100_000))).toEqual([]);
  expect(search(randomBytes(50_000).toString("hex"))).toEqual([]);
});
