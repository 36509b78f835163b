import type { LogStore } from "../../events/event-types-and-codec.ts";
import { STREAMS, type StateContext } from "../log/event-log.ts";
import { errorFields } from "../platform/logger.ts";

/**
 * Number of free texts that WhatsApp delivers for a sending number in a month, since 2026-10-01. Without a payment
 * method it then accepts further texts but does not deliver them. Source: documents of other vendors, not of Meta.
 */
const FREE_TEXTS = 1_000;

/** Number of texts in a month from which on the operator is warned. */
const WARN_FROM = 900;

/** Counts the texts that the messaging network accepted in the UTC month of `now`, up to {@link FREE_TEXTS}. */
export async function countFreeTexts(store: LogStore, now: number): Promise<number> {
  const month = monthAt(now);
  const stream = STREAMS.delivery("messaging");
  let texts = 0;
  for await (const { type, time, data } of store.read({ stream, types: ["DispatchSucceeded"], backwards: true })) {
    if (!time.startsWith(month) || texts >= FREE_TEXTS) break;
    if (type === "DispatchSucceeded") texts += data.requests.length;
  }
  return texts;
}

/** Returns a warning for the operator; undefined while enough free texts are left in the month. */
export function warnOfTexts(texts: number): string | undefined {
  if (texts < WARN_FROM) return undefined;
  const found = texts >= FREE_TEXTS ? `${FREE_TEXTS} or more` : String(texts);
  return `WhatsApp accepted ${found} texts this month: beyond ${FREE_TEXTS} it loses those that no payment method covers`;
}

/** Announces once a month that few are left of the texts that WhatsApp delivers free of charge. */
export function watchFreeTexts({ eventLog, projector, announce, clock, logger }: StateContext): Disposable {
  let month = "";
  let texts = 0;
  const count = async (): Promise<void> => {
    const now = clock();
    texts = await countFreeTexts(eventLog.store, now);
    month = monthAt(now);
    const warning = warnOfTexts(texts);
    if (warning !== undefined) await announce(warning, `whatsapp/${month}`, "messaging");
  };
  const stopListening = projector.listen(({ type, time, data }) => {
    if (type !== "DispatchSucceeded" || data.channel !== "messaging") return;
    const isNewMonth = !time.startsWith(month) || month === "";
    texts = (isNewMonth ? 0 : texts) + data.requests.length;
    if (isNewMonth || (texts >= WARN_FROM && texts - data.requests.length < WARN_FROM))
      void count().catch((fault: unknown) => logger.error("the month's texts were not counted", errorFields(fault)));
  });
  return { [Symbol.dispose]: stopListening };
}

function monthAt(now: number): string {
  return new Date(now).toISOString().slice(0, 7);
}
