import type { FaultKind } from "../faults.ts";

interface Words {
  /** Label of the fault's switch on the page. */
  readonly title: string;
  /** Effect of the fault while its switch is on, in one or two sentences. */
  readonly does: string;
}

/**
 * Words for each fault, the same for all networks. Each network answers in its own form: Meta, for example, answers too
 * many requests with a 400.
 */
export const FAULT_WORDS: Readonly<Record<FaultKind, Words>> = {
  "429": {
    title: "Too many requests",
    does: "Refuses each request as one too many, with a wait where one is given. Nothing is delivered.",
  },
  "500": { title: "Internal error", does: "Answers that something broke inside. Nothing is delivered." },
  "502_html": {
    title: "Bad gateway",
    does: "A proxy in front of the network answers 502 with a page of HTML in place of JSON. Nothing is delivered.",
  },
  token_revoked: {
    title: "Credentials refused",
    does: "Refuses token, key or webhook as no longer valid. Nothing is delivered.",
  },
  credits_depleted: {
    title: "Credits used up",
    does: "X answers 402: the developer account has no credits. Tokens are still given out.",
  },
  usage_capped: {
    title: "Monthly cap reached",
    does: "X answers 429 for the rest of the month. Nothing is delivered.",
  },
  sender_restricted: {
    title: "Sender restricted",
    does: "X refuses every message with 403, in the words that it also has for a single person. Reading still works.",
  },
  client_forbidden: { title: "App not enrolled", does: "X answers 403: the app belongs to no project." },
  over_capacity: { title: "Over capacity", does: "X answers 503. Nothing is delivered." },
  channel_archived: {
    title: "Chat closed to us",
    does: "The channel is archived, or the bot was removed from the group. Nothing is delivered.",
  },
  action_prohibited: {
    title: "Posting prohibited",
    does: "An administrator has forbidden posts. Nothing is delivered.",
  },
  webhook_deleted: { title: "Webhook deleted", does: "The webhook is unknown. Nothing is delivered." },
  space_deleted: { title: "Space deleted", does: "The space is not found. Nothing is delivered." },
  workflow_deleted: { title: "Workflow deleted", does: "The workflow is not found. Nothing is delivered." },
  workflow_off: { title: "Workflow switched off", does: "The workflow exists and is disabled. Nothing is delivered." },
  bot_blocked: { title: "Bot blocked", does: "The user has blocked the bot. Nothing is delivered." },
  monthly_limit: { title: "Monthly limit reached", does: "No message is left in this month. Nothing is delivered." },
  window_closed: {
    title: "24 hours over",
    does: "The person wrote too long ago to be sent a text. Nothing is delivered.",
  },
  account_locked: { title: "Account locked", does: "The business account is locked. Nothing is delivered." },
  timeout_before: {
    title: "No answer, nothing delivered",
    does: "The request arrives and is never answered. Nothing is delivered. The client waits until it gives up.",
  },
  timeout_after_delivery: {
    title: "Delivered, no answer",
    does: "The message is delivered, and the answer never comes. The client waits until it gives up.",
  },
  reset_before: {
    title: "Connection reset, nothing delivered",
    does: "The connection ends before anything is done with the request.",
  },
  reset_after_delivery: {
    title: "Delivered, connection reset",
    does: "The message is delivered, and the connection ends before the answer.",
  },
  cut_body: {
    title: "Answer cut off",
    does: "The message is delivered, and the connection ends in the middle of the answer.",
  },
  slow_body: {
    title: "Slow answer",
    does: "The message is delivered, and the answer takes a minute, a few bytes at a time.",
  },
  huge_body: {
    title: "Huge answer",
    does: "The message is delivered, and the answer is 256 MiB long.",
  },
  invalid_json: { title: "Broken JSON", does: "The message is delivered, and the answer is no valid JSON." },
  redirect: {
    title: "Redirect",
    does: "Answers 307 to another address, which whoever sends credentials must not follow. Nothing is delivered.",
  },
  stream_drop: { title: "Signal lost", does: "Nothing says that it happened; only reading finds it." },
  stream_repeat: { title: "Signal repeated", does: "Each signal of the stream arrives twice." },
  stream_reorder: { title: "Signals out of order", does: "A signal arrives after the one that follows it." },
  stream_cut: {
    title: "Stream cut off",
    does: "The connection of the stream ends in the middle of a signal, which is lost.",
  },
  stream_disconnect: {
    title: "Stream disconnected",
    does: "X ends the stream with a line that says so, in place of the next signal.",
  },
  repeated_cursor: {
    title: "Pages that never end",
    does: "Each page of a list leads to itself again, so that whoever follows the pages goes round in circles.",
  },
};
