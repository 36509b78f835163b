import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import type { Emit, Part } from "./write-mixed-log.ts";

/**
 * Number of rounds from one notification to the next. The next constant is the number from one token refresh to the
 * next. A round has about fifty events.
 */
const ROUNDS_A_NOTIFICATION = 10;
const ROUNDS_A_REFRESH = 40;

const USER = { id: "9001", username: "acme", name: "Acme" };
const EXPIRES_AT = "2026-11-20T12:00:00.000Z";

/** Writes notifications with their deliveries, answers to requests with keys, and the account's tokens. */
export function restPart(): Part {
  let rounds = 0;
  return (emit) => {
    if (rounds++ === 0) {
      const data = { user: USER, scopes: ["dm.write", "users.read"], expires_at: EXPIRES_AT };
      emit(STREAMS.account, [{ type: "AccountAuthorized", data }]);
    }
    emit(STREAMS.answer("tester"), [answer(rounds)]);
    if (rounds % ROUNDS_A_NOTIFICATION === 0) notify(emit, rounds);
    if (rounds % ROUNDS_A_REFRESH === 0) {
      emit(STREAMS.account, [{ type: "TokenRefreshed", data: { user_id: USER.id, expires_at: EXPIRES_AT } }]);
    }
  };
}

function answer(number: number): NewEvent {
  const digest = number.toString(16).padStart(64, "0");
  const headers = { "content-type": "application/json" };
  return { type: "RequestAnswered", data: { digest, status: 202, headers, body: `{"id":"${number}"}` } };
}

function notify(emit: Emit, number: number): void {
  const request = { message: `order ${number} paid`, service: "shop", level: "info" } as const;
  const source = emit(STREAMS.requests, [{ type: "NotificationRequested", data: request }]);
  const outcome = { sources: [source], attempt: 1, mode: "single" as const, status: 200, latency_ms: 120 };
  const lane = { channel: "chat", lane: "direct", low_watermark: source + 1 } as const;
  emit(STREAMS.delivery("chat"), [{ type: "DispatchSucceeded", data: { ...lane, requests: [outcome] } }]);
}
