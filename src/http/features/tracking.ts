import { isIP } from "node:net";
import { FormatRegistry, Type, type Static } from "@sinclair/typebox";
import type { ClickChannel } from "../../../events/channel.ts";
import { isBot } from "../../delivery/bots.ts";
import type { Delivery } from "../../delivery/delivery.ts";
import { STREAMS, type NewEvent } from "../../log/event-log.ts";
import { json } from "../server/answer.ts";
import { jsonBody } from "../server/body.ts";
import { post } from "../server/endpoint.ts";
import type { RequestLog } from "../server/request-log.ts";
import { closed, id } from "./schema.ts";

export interface TrackingDeps {
  readonly delivery: Delivery;
  readonly requestLog: RequestLog;
  /** False: clicks of bots are recorded and dispatched to no channel. */
  readonly dispatchBots: boolean;
}

FormatRegistry.Set("ip-address", (value) => isIP(value) !== 0);
FormatRegistry.Set("http-url", (value) => normalizedUrl(value) !== undefined);

/** Both become part of a stream's name, which holds no control character. */
const IN_A_STREAM_NAME = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";

export const trackingBody = Type.Object(
  {
    event: Type.String({ minLength: 1, maxLength: 64, examples: ["click"] }),
    domain: Type.String({ maxLength: 253, pattern: IN_A_STREAM_NAME, examples: ["go.example"] }),
    short_code: Type.String({ maxLength: 128, pattern: IN_A_STREAM_NAME, examples: ["spring"] }),
    original_url: Type.String({
      maxLength: 4096,
      format: "http-url",
      description: "Whatever a browser takes for an absolute http or https URL (WHATWG), a raw space too.",
      examples: ["https://shop.example/?utm_source=dm", "http://shop.example"],
    }),
    ip: Type.Optional(
      Type.String({
        format: "ip-address",
        description: "Of the person who clicked; IPv4 or IPv6.",
        examples: ["192.0.2.1", "2001:db8::1"],
      }),
    ),
    user_agent: Type.Optional(
      Type.String({
        maxLength: 1024,
        examples: ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"],
      }),
    ),
  },
  closed,
);

export const trackClick = post({
  id: "recordEvent",
  tag: "tracking",
  summary: "Records a click, which is dispatched to three channels.",
  description:
    "Answered once the event is durable. The dispatches to the advertising network, the team chat and the messaging service follow.",
  takes: ["Idempotency-Key"],
  body: jsonBody(trackingBody),
  answers: { 202: { says: "The click is on disk.", schema: Type.Object({ id }) } },
  problems: [],
  handle({ delivery, requestLog, dispatchBots }: TrackingDeps, asked) {
    const { domain, short_code, user_agent } = asked.body;
    const bot = isBot(user_agent);
    const channels = bot && !dispatchBots ? [] : delivery.takeClicks;
    const newEvent: NewEvent = { type: "LinkClicked", data: clickOf(asked.body, bot, channels) };
    const how = { stream: STREAMS.link(domain, short_code), isChecked: true };
    const appended = requestLog.append(newEvent, asked, how);
    return appended.then(({ ids }) => json(202, { id: ids[0] }));
  },
});

/** What the log holds of a click. Nobody checks it again: whatever fits the body's schema makes data that fits the event's. */
export function clickOf(body: Static<typeof trackingBody>, bot: boolean, channels: readonly ClickChannel[]) {
  const normalized_url = normalizedUrl(body.original_url);
  const differs = normalized_url !== undefined && normalized_url !== body.original_url;
  return { ...body, ...(differs ? { normalized_url } : {}), bot, channels: [...channels] };
}

/** No browser gets one into an address: they come from what was cut or glued wrongly. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** What was asked for once: a click's address is asked for when its body is checked, and again when it is recorded. */
const lastUrl: { raw: string | undefined; url: string | undefined } = { raw: undefined, url: undefined };

/**
 * The address that a browser asks for when it is given this one (https://url.spec.whatwg.org): a raw space is escaped, a
 * host is in Punycode. Undefined: a browser takes it for none of http or https, or it holds a control character.
 */
function normalizedUrl(raw: string): string | undefined {
  if (raw === lastUrl.raw) {
    lastUrl.raw = undefined;
    return lastUrl.url;
  }
  lastUrl.raw = raw;
  lastUrl.url = parseUrl(raw);
  return lastUrl.url;
}

function parseUrl(raw: string): string | undefined {
  const url = CONTROL_CHARACTER.test(raw) ? null : URL.parse(raw);
  return url?.protocol === "https:" || url?.protocol === "http:" ? url.href : undefined;
}
