import { createHmac } from "node:crypto";
import type { SandboxClock } from "./clock.ts";
import type { createRecorded } from "./record-received.ts";

/** The part of WhatsApp that posts statuses. */
interface StatusState {
  readonly clock: SandboxClock;
  readonly phoneNumberId: string;
  readonly appSecret: string;
  readonly verifyToken: string;
  statusUrl: string | undefined;
  readonly statuses: ReturnType<typeof createRecorded<{ readonly body: string; readonly status: number }>>;
  readonly freeTexts: number;
}

/**
 * Subscribes a webhook to the statuses of messages, as a person does in the dashboard of Meta's app. Throws if it does
 * not answer the challenge: https://developers.facebook.com/docs/graph-api/webhooks/getting-started
 */
export async function subscribeStatuses(state: StatusState, url: string): Promise<void> {
  const challenge = String(1_158_201_444 + state.statuses.total);
  const query = { "hub.mode": "subscribe", "hub.verify_token": state.verifyToken, "hub.challenge": challenge };
  // oxlint-disable-next-line no-restricted-globals -- a network calls a webhook by itself.
  const answer = await fetch(`${url}?${new URLSearchParams(query).toString()}`);
  const text = await answer.text();
  if (answer.status !== 200 || text !== challenge) throw new Error(`the challenge was answered with ${answer.status}`);
  state.statusUrl = url;
}

interface Sent {
  readonly id: string;
  readonly to: string;
  readonly callbackData: string | undefined;
  /** Number of the message among those of the month. */
  readonly number: number;
}

/** Error of a text beyond the free ones of a month, if no payment method covers it. */
const PAYMENT = { code: 131_042, title: "Business eligibility payment issue" };

/** Posts the status of a message that was accepted: delivered, or failed if it is beyond the free ones of the month. */
export async function postStatus(state: StatusState, sent: Sent): Promise<void> {
  const isLost = sent.number > state.freeTexts;
  const status = {
    id: sent.id,
    status: isLost ? "failed" : "delivered",
    timestamp: String(Math.floor(state.clock.now() / 1_000)),
    recipient_id: sent.to,
    ...(sent.callbackData === undefined ? {} : { biz_opaque_callback_data: sent.callbackData }),
    ...(isLost
      ? { errors: [{ ...PAYMENT, message: PAYMENT.title, error_data: { details: "No payment method." } }] }
      : {}),
  };
  const metadata = { display_phone_number: "15550001111", phone_number_id: state.phoneNumberId };
  const value = { messaging_product: "whatsapp", metadata, statuses: [status] };
  const body = JSON.stringify({
    object: "whatsapp_business_account",
    entry: [{ id: "102290129340398", changes: [{ field: "messages", value }] }],
  });
  state.statuses.add({ body, status: await post(state, body) });
}

/**
 * Posts a signed notice to the subscribed webhook. Returns the HTTP status of the webhook's answer; 0 if the webhook
 * does not answer, or if no webhook is subscribed.
 */
export async function post({ statusUrl, appSecret }: StatusState, body: string): Promise<number> {
  if (statusUrl === undefined) return 0;
  const signature = `sha256=${createHmac("sha256", appSecret).update(body).digest("hex")}`;
  const headers = { "content-type": "application/json", "x-hub-signature-256": signature };
  // oxlint-disable-next-line no-restricted-globals -- a network calls a webhook by itself.
  const answer = await fetch(statusUrl, { method: "POST", headers, body }).catch(() => undefined);
  return answer?.status ?? 0;
}
