import { createHmac, timingSafeEqual } from "node:crypto";
import { Type } from "@sinclair/typebox";
import { secret, type Secret } from "../../platform/secret.ts";
import { parseAnswer } from "../classify-answer.ts";
import { excerpt } from "../sanitize-and-truncate-text.ts";
import { CHANNEL_FAULTS } from "./whatsapp.ts";

/** Compares two secrets in a time that does not depend on where they differ. */
export function isSameSecret(given: string, expected: Secret): boolean {
  const digest = (text: string) => createHmac("sha256", "length").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected.reveal()));
}

/** True if Meta signed these bytes: `signature` is the header `X-Hub-Signature-256`. */
export function isSignedByMeta(bytes: Uint8Array, signature: string, appSecret: Secret): boolean {
  const expected = createHmac("sha256", appSecret.reveal()).update(bytes).digest("hex");
  return isSameSecret(signature, secret(`sha256=${expected}`));
}

const status = Type.Object({
  id: Type.String(),
  status: Type.String(),
  biz_opaque_callback_data: Type.Optional(Type.String()),
  errors: Type.Optional(Type.Array(Type.Object({ code: Type.Integer(), title: Type.Optional(Type.String()) }))),
});

const change = Type.Object({
  metadata: Type.Optional(Type.Object({ phone_number_id: Type.String() })),
  statuses: Type.Optional(Type.Array(status)),
});

/** Schema of what Meta posts: https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks */
export const whatsappNotice = Type.Object(
  {
    object: Type.Literal("whatsapp_business_account"),
    entry: Type.Array(
      Type.Object({
        changes: Type.Array(Type.Object({ value: change })),
      }),
    ),
  },
  { examples: [{ object: "whatsapp_business_account", entry: [] }] },
);

/**
 * Reads the statuses that Meta posts of a number's messages: the lost messages, without `dispatchId` if another program
 * sent them, and the number of all other statuses. Undefined if the text has another form.
 */
export function readStatuses(text: string, phoneNumberId: string) {
  const notice = parseAnswer(whatsappNotice, text);
  const values = notice?.entry.flatMap(({ changes }) => changes.map(({ value }) => value));
  const own = values?.filter(({ metadata }) => metadata?.phone_number_id === phoneNumberId);
  const statuses = own?.flatMap((value) => value.statuses ?? []);
  const failed = statuses?.filter((one) => one.status === "failed");
  const lost = failed?.map(({ id: messageId, biz_opaque_callback_data: dispatchId, errors: [error] = [] }) => {
    const words = error && (CHANNEL_FAULTS.get(error.code) ?? excerpt(error.title ?? ""));
    return { messageId, dispatchId, detail: error === undefined ? "no reason was given" : `${error.code}: ${words}` };
  });
  return lost && { lost, passed: statuses!.length - lost.length };
}
