import type { Dispatch } from "../../src/networks/network.ts";

const ID = "019a9f00-0000-7000-8000-000000000001";
const TIME = "2026-11-20T10:00:00.750Z";

export const NOW = Date.parse("2026-11-20T10:00:05.000Z");

export const CLICK = {
  kind: "click",
  id: ID,
  time: TIME,
  event: "click",
  domain: "go.example.com",
  shortCode: "autumn",
  originalUrl: "https://example.com/sale?a=1&fbclid=IwAR0_-aB&b=2#top",
  normalizedUrl: "https://example.com/sale?a=1&fbclid=IwAR0_-aB&b=2#top",
  ip: "203.0.113.77",
  userAgent: "Mozilla/5.0",
  bot: false,
} satisfies Dispatch;

export const NOTIFICATION = {
  kind: "notification",
  id: ID,
  time: TIME,
  message: "disk is full",
  service: "backup",
  level: "error",
} satisfies Dispatch;

export const MESSAGE = { kind: "message", id: ID, time: TIME, text: "hello\nthere" } satisfies Dispatch;

export const TEST = { kind: "test", id: ID, time: TIME } satisfies Dispatch;
