import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { excerpt } from "./excerpt.ts";
import { readJson } from "./json-answer.ts";
import type { DispatchResult } from "./network.ts";
import { retryAfterMs, retryAfterOf } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

const DONE = Type.Object({ ok: Type.Literal(true), result: Type.Unknown() });
const SENT = Type.Object({ message_id: Type.Integer() });

const REFUSED = Type.Object({
  ok: Type.Literal(false),
  description: Type.String(),
});
const RETRY = Type.Object({
  parameters: Type.Object({ retry_after: Type.Number() }),
});
const MIGRATED = Type.Object({
  parameters: Type.Object({ migrate_to_chat_id: Type.Integer() }),
});

/** Token revoked; bot blocked, kicked or never started by the user; no such bot. */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404]);

/** 400s that are about the chat rather than the message; descriptions are all that Telegram tells them apart by. */
const CHAT_AT_FAULT = /chat not found|chat_id|peer_id_invalid|chat was (upgraded|deleted)|rights|chat_write_forbidden/i;

/**
 * What an answer to `sendMessage` means. Telegram does not de-duplicate: only a 429 and a refusal in its own words
 * prove that nothing was sent. https://core.telegram.org/bots/api#making-requests
 */
export function classifyTelegramAnswer(answer: NetworkAnswer): DispatchResult {
  const { status, text } = answer;
  const done = status === 200 ? readJson(DONE, text) : undefined;
  if (done !== undefined) {
    const sent = Value.Check(SENT, done.result) ? { networkId: String(done.result.message_id) } : {};
    return { outcome: "delivered", status, ...sent };
  }
  const description = readJson(REFUSED, text)?.description ?? "";
  const detail = describe(status, description);
  if (status === 429) {
    const pause = retryAfterMs(readJson(RETRY, text)?.parameters.retry_after) ?? retryAfterOf(answer.headers);
    return {
      outcome: "retryable",
      status,
      detail,
      ...(pause === undefined ? {} : { retryAfterMs: pause }),
    };
  }
  // 408 leaves open how much the server had understood.
  if (status < 400 || status === 408 || status >= 500) return { outcome: "in_doubt", status, detail };
  const channel = CHANNEL_STATUSES.has(status) || (status === 400 && CHAT_AT_FAULT.test(description));
  return { outcome: "refused", status, detail, channel };
}

/** The chat's new id when the answer says that the group became a supergroup: then nothing was sent. */
export function migratedTo({ status, text }: NetworkAnswer): string | undefined {
  const id = status === 400 ? readJson(MIGRATED, text)?.parameters.migrate_to_chat_id : undefined;
  return id === undefined ? undefined : String(id);
}

/** Whether a call of any method was carried out. */
export function isDone({ status, text }: NetworkAnswer): boolean {
  return status === 200 && readJson(DONE, text) !== undefined;
}

/** The status with Telegram's description, where there is one. */
export function describeTelegram({ status, text }: NetworkAnswer): string {
  return describe(status, readJson(REFUSED, text)?.description ?? "");
}

function describe(status: number, description: string): string {
  return `Telegram answered ${status}${description === "" ? "" : ` ${excerpt(description)}`}`;
}
