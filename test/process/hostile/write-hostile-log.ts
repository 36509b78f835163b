import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { openLog } from "../../../src/privacy/open-log.ts";
import type { Installation } from "../../harness/process.ts";
import { HOSTILE } from "./texts.ts";

const DAY = "2026-11-20";
const TIME = `${DAY}T10:00:00.000Z`;

/**
 * Writes a log in which every text that comes from outside is hostile, without the checks that requests and files would
 * meet.
 */
export async function writeHostileLog(world: Installation): Promise<void> {
  await using store = await openLog(loadConfig(world.env, () => ""));
  const eventLog = createEventLog(store, makeId);
  for (const [nth, text] of Object.values(HOSTILE).entries()) {
    const metadata = { caller: text, request_id: text, traceparent: text };
    await eventLog.append(STREAMS.outreach, outreachFacts(nth, text), metadata);
    await eventLog.append(STREAMS.account, accountFacts(text), metadata);
    await eventLog.append(STREAMS.link("go.example", String(nth)), clickFacts(text), metadata);
    const { last } = await eventLog.append(STREAMS.requests, requestFacts(text), metadata);
    await eventLog.append(STREAMS.delivery("chat"), deliveryFacts(last, text), metadata);
  }
}

function outreachFacts(nth: number, text: string): NewEvent[] {
  const known = { id: String(1_000 + nth), username: text };
  const attempt = { attempt_id: makeId(), run_id: text, recipient: known };
  return [
    { type: "RecipientAdded", data: recipient(known, text) },
    { type: "RecipientAdded", data: recipient({ username: text }, text) },
    { type: "RunStarted", data: { run_id: text, dry_run: false } },
    { type: "DirectMessageAttempted", data: { ...attempt, text, variant: text, day: DAY, account_id: "1" } },
    { type: "DirectMessageInDoubt", data: { ...attempt, detail: text } },
    { type: "DirectMessageSkipped", data: { run_id: text, recipient: known, reason: "no_consent", detail: text } },
    {
      type: "RunFinished",
      data: { run_id: text, reason: "completed", sent: 0, skipped: 1, failed: 0, in_doubt: 1 },
    },
  ];
}

function recipient(who: { id?: string; username: string }, text: string) {
  return { recipient: who, name: text, basis: "opt_in", fields: { [text]: text }, source: "list" } as const;
}

function accountFacts(text: string): NewEvent[] {
  return [
    {
      type: "AccountAuthorized",
      data: { user: { id: "1", username: text, name: text }, scopes: [text], expires_at: TIME },
    },
    { type: "TokenRefreshFailed", data: { user_id: "1", reason: text, dead: false } },
  ];
}

function clickFacts(text: string): NewEvent[] {
  const click = { event: text, domain: text, short_code: text, original_url: text, ip: text, user_agent: text };
  return [{ type: "LinkClicked", data: { ...click, bot: false, channels: [] } }];
}

function requestFacts(text: string): NewEvent[] {
  return [
    { type: "MessageRequested", data: { text } },
    { type: "NotificationRequested", data: { message: text, service: text, level: "error" } },
  ];
}

function deliveryFacts(source: number, text: string): NewEvent[] {
  const request = { sources: [source], attempt: 1, mode: "digest" as const, digest: text, detail: text, refused: true };
  return [
    {
      type: "DispatchAbandoned",
      data: { channel: "chat", lane: "direct", low_watermark: source, requests: [request] },
    },
    { type: "ChannelSuspended", data: { channel: "chat", network: text, detail: text, credential: text } },
  ];
}
