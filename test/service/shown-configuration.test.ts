// These tests call the code directly.
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

test("an instance's configuration digest depends on the webhook's events and order", () => {
  const digest = digestOf({});
  expect(digestOf({ WEBHOOK_EVENTS: "RunFinished,LinkClicked" })).toBe(digest);
  expect(digestOf({ WEBHOOK_EVENTS: "LinkClicked" })).not.toBe(digest);
  expect(digestOf({ WEBHOOK_ORDER: "stream" })).not.toBe(digest);
});

test("the digest does not depend on the webhook's secret and address", () => {
  const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, "b").toString("base64")}`;
  expect(digestOf({ WEBHOOK_SECRET, WEBHOOK_URL: "https://other.example/hook" })).toBe(digestOf({}));
});
