// On no harness.
import { expect, test } from "bun:test";
import { loadConfig } from "../../src/config/config.ts";
import { ownInstance } from "../../src/service/shown-configuration.ts";

const WEBHOOK = {
  WEBHOOK_URL: "https://receiver.example/hook",
  WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, "a").toString("base64")}`,
  WEBHOOK_EVENTS: "LinkClicked,RunFinished",
};

const digestOf = (more: Record<string, string>): string =>
  ownInstance(loadConfig({ ...WEBHOOK, ...more }, () => "")).configuration;

test("an instance by which the webhook would carry something else shows itself as configured otherwise", () => {
  const digest = digestOf({});
  expect(digestOf({ WEBHOOK_EVENTS: "RunFinished,LinkClicked" })).toBe(digest);
  expect(digestOf({ WEBHOOK_EVENTS: "LinkClicked" })).not.toBe(digest);
  expect(digestOf({ WEBHOOK_ORDER: "stream" })).not.toBe(digest);
});

test("no secret is in what it shows, nor in the digest of it", () => {
  const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, "b").toString("base64")}`;
  expect(digestOf({ WEBHOOK_SECRET, WEBHOOK_URL: "https://other.example/hook" })).toBe(digestOf({}));
});
