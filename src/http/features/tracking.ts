import { isIP } from "node:net";
import { FormatRegistry, Type, type Static } from "@sinclair/typebox";
import type { ClickChannel } from "../../../events/channel.ts";
import { isBot } from "../../delivery/bots.ts";
import { STREAMS, type NewEvent } from "../../log/event-log.ts";
import { feature, type AppDeps } from "../deps.ts";
import { jsonBody } from "../server/body.ts";
import { operation, reply } from "../server/endpoint.ts";
import { performOnce } from "../server/idempotency.ts";
import { closed, id } from "./schema.ts";

FormatRegistry.Set("ip-address", (value) => isIP(value) !== 0);
FormatRegistry.Set("http-url", (value) => isHttpUrl(value));

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
      description: "An absolute http or https URL, as lenient as a browser (WHATWG): a raw space is allowed.",
      examples: ["https://shop.example/?utm_source=dm", "http://shop.example"],
    }),
    ip: Type.Optional(
      Type.String({
        format: "ip-address",
        description: "The visitor's address, IPv4 or IPv6.",
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

export function trackingEndpoints({ delivery, requestLog, dispatchBots, idempotency }: AppDeps) {
  return feature("tracking", "/api/tracking").post(
    "/event",
    ({ body, call, status }) =>
      performOnce(idempotency, call, body, async (key) => {
        const { domain, short_code, user_agent } = body;
        const bot = isBot(user_agent);
        const channels = bot && !dispatchBots ? [] : delivery.takeClicks;
        const newEvent: NewEvent = { type: "LinkClicked", data: toClick(body, bot, channels) };
        const how = { stream: STREAMS.link(domain, short_code), isChecked: true };
        const { ids } = await requestLog.append(newEvent, { metadata: call.metadata, key }, how);
        return status(202, { id: ids[0]! });
      }),
    {
      body: jsonBody(trackingBody),
      response: { 202: reply("The click is on disk.", Type.Object({ id })) },
      detail: operation("recordEvent", "tracking", "strict", {
        summary: "Records a click, which is dispatched to three channels.",
        description:
          "Answered once the event is durable. The dispatches to the advertising network, the team chat and the messaging service follow.",
        requestHeaders: ["Idempotency-Key"],
      }),
    },
  );
}

/** The event data of a click. Not checked again: a body that fits its schema gives data that fits the event's. */
export function toClick(body: Static<typeof trackingBody>, bot: boolean, channels: readonly ClickChannel[]) {
  const normalized_url = normalizedUrl(body.original_url);
  const differs = normalized_url !== undefined && normalized_url !== body.original_url;
  return { ...body, ...(differs ? { normalized_url } : {}), bot, channels: [...channels] };
}

/** No browser gets one into an address: they come from what was cut or glued wrongly. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/**
 * The address that a browser asks for when it is given this one (https://url.spec.whatwg.org): a raw space is escaped, a
 * host is in Punycode. Undefined: a browser takes it for none of http or https, or it holds a control character.
 */
function normalizedUrl(raw: string): string | undefined {
  return isHttpUrl(raw) ? URL.parse(raw)?.href : undefined;
}

/** Costs less than to make the address. A browser leaves out spaces before it, and nothing else that is taken here. */
function isHttpUrl(raw: string): boolean {
  return HTTP.test(raw) && !CONTROL_CHARACTER.test(raw) && URL.canParse(raw);
}

const HTTP = /^ *https?:/i;
