import { hash } from "node:crypto";
import { Type, type Static, type StringOptions } from "@sinclair/typebox";
import { isStoreError } from "eventstore-lite";
import type { DataOf } from "../../../events/event-types-and-codec.ts";
import { normalizeDomain, normalizeLink, splitLink } from "../../../projections/normalize-link.ts";
import { DAY_MS } from "../../../projections/parse-log-times.ts";
import { linkKey } from "../../../projections/link-keys-and-text-links.ts";
import { EVENT_ID, findEventNear, toReading } from "../../history/find-event.ts";
import {
  attribute,
  CLOCKS_DIFFER_MS,
  readClicksAt,
  readRecipientClicks,
  readLinkClicks,
} from "../../links/conversion-attribution.ts";
import { eventAt, STREAMS, type NewEvent } from "../../log/event-log.ts";
import { SNAP_NAMES } from "../../networks/ads/snap.ts";
import { isoTime } from "../../platform/clock-ids-and-timers.ts";
import { closed, id } from "../../platform/common-schemas.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { AMOUNT_MAX, formatAmount, isCurrency, parseAmount } from "../../platform/money.ts";
import { recipientAmong, recipientName } from "../../recipients/resolve-recipient.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { jsonBody } from "../server/body.ts";
import { IN_A_STREAM_NAME, refusesTracking } from "./record-click-and-redirect.ts";
import { reply, route, type RequestContext } from "../server/endpoint.ts";
import { readAppendKey } from "../server/idempotency.ts";
import { problems, repeatable } from "../server/problem.ts";

/** Maximum age of a conversion, in days, because networks accept no older ones. */
const AGE_DAYS_MAX = 7;

const TIME = String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$`;

const optionalText = (options: StringOptions) => Type.Optional(Type.String(options));

const members = {
  name: Type.String({
    maxLength: 40,
    pattern: "^[A-Za-z][A-Za-z0-9_ ]*$",
    description: "A standard name of Meta, such as Purchase or Lead, or your own.",
    examples: ["Purchase"],
  }),
  click_id: optionalText({
    pattern: EVENT_ID.source.replaceAll("a-f", "a-fA-F"),
    description: "Id of the visitor's click.",
  }),
  link: optionalText({
    maxLength: 400,
    pattern: IN_A_STREAM_NAME,
    description: "The link that led to it.",
    examples: ["go.example/spring"],
  }),
  recipient: Type.Optional(recipientName),
  value: Type.Optional(
    Type.Union([Type.Number(), Type.String({ maxLength: 20 })], {
      description: "A decimal; negative to reverse a conversion, such as by a refund. Required for Purchase.",
      examples: ["24.90", 24.9],
    }),
  ),
  amount: Type.Optional(
    Type.Integer({
      minimum: -AMOUNT_MAX,
      maximum: AMOUNT_MAX,
      description: "The same in the currency's smallest unit, in place of `value`.",
      examples: [2490],
    }),
  ),
  currency: optionalText({ pattern: "^[A-Z]{3}$", description: "ISO 4217.", examples: ["EUR"] }),
  external_id: optionalText({
    minLength: 1,
    maxLength: 128,
    pattern: IN_A_STREAM_NAME,
    description: "Your id, such as an order number. A repeat with the same name is recorded once.",
    examples: ["order-1001"],
  }),
  occurred_at: optionalText({ pattern: TIME, description: `Default: now. At most ${AGE_DAYS_MAX} days ago.` }),
  anonymous: Type.Optional(Type.Boolean({ description: "True if the visitor sent Sec-GPC or DNT." })),
  notify: Type.Optional(Type.Boolean({ description: "True to announce it in the team chat." })),
};
const example = {
  name: "Purchase",
  link: "go.example/spring",
  value: "24.90",
  currency: "EUR",
  external_id: "order-1001",
  anonymous: false,
  notify: false,
};
const conversionBody = Type.Object(members, { ...closed, examples: [example] });
type ConversionBody = Static<typeof conversionBody>;

export function conversionEndpoints(context: HttpContext) {
  const { eventIntake } = context;
  return feature("conversions", "/api/tracking").post(
    "/conversion",
    async ({ body, call, status }) => {
      const conversion = await repeatable(toConversion(context, body, call));
      const { domain, short_code, external_id } = conversion;
      const newEvents: NewEvent[] = [
        { type: (conversion.value ?? 0) < 0 ? "ConversionReversed" : "ConversionRecorded", data: conversion },
        ...(body.notify === true ? [toNotification(context, conversion)] : []),
      ];
      const key = external_id === undefined ? readAppendKey(call, body) : toKey(context, body, external_id);
      const stream = domain === undefined ? STREAMS.requests : STREAMS.link(domain, short_code!);
      const appending = eventIntake.append(newEvents, { metadata: call.metadata, key }, { stream });
      const { first, ids } = await appending.catch((fault: unknown) => {
        throw external_id !== undefined && isStoreError(fault, "key_reused") ? problems.externalIdReused() : fault;
      });
      // If the request is a repeat, `attributed` comes from the event of the first request. A click that was recorded
      // since must not change the answer.
      const { data } = key === undefined ? newEvents[0]! : await eventAt(context.eventLog.store, first);
      return status(202, { id: ids[0]!, event_id: external_id ?? ids[0]!, attributed: "click" in data });
    },
    route("recordConversion", "tracking", ["token", "track"], {
      body: jsonBody(conversionBody),
      response: {
        202: reply(
          "The conversion is on disk.",
          Type.Object({
            id,
            event_id: Type.String({
              description: "Id by which networks recognise a repeat. Give it to the pixel of the page.",
              examples: ["order-1001"],
            }),
            attributed: Type.Boolean({ description: "True if a click was found that led to it." }),
          }),
        ),
      },
      summary: "Records a conversion, such as a purchase, and attributes it to a click.",
      description:
        "Give one of `click_id`, `link` and `recipient`. Answered once the event is durable; the ads network gets it afterwards, unless the visitor or the recipient does not want to be tracked. Sec-GPC and DNT count as `anonymous`.",
      requestHeaders: ["Idempotency-Key"],
      problems: ["unusableConversion", "otherDomain", "externalIdReused", "unknownClick", "notConfigured"],
    }),
  );
}

const refuse = (path: string, message: string) => problems.unusableConversion(path, message);

/** Checks a posted conversion, finds its click, and converts it to event data. Throws problems. */
async function toConversion(
  context: HttpContext,
  body: ConversionBody,
  { request, links }: RequestContext,
): Promise<DataOf<"ConversionRecorded">> {
  const { click_id, link, recipient, name, external_id } = body;
  if ([click_id, link, recipient].filter((one) => one !== undefined).length !== 1)
    throw refuse("", "Expected one of click_id, link and recipient");
  const money = readMoney(body);
  const now = context.clock();
  const occurredAt = body.occurred_at === undefined ? now : Date.parse(body.occurred_at);
  if (Number.isNaN(occurredAt)) throw refuse("/occurred_at", "Expected a time that exists");
  if (occurredAt > now + CLOCKS_DIFFER_MS) throw refuse("/occurred_at", "Expected a time that is not in the future");
  if (occurredAt < now - AGE_DAYS_MAX * DAY_MS)
    throw refuse("/occurred_at", `Expected a time at most ${AGE_DAYS_MAX} days ago`);
  const candidates = await readCandidates(context, body);
  const click = attribute(candidates, occurredAt, context.config.attribution);
  const named = click_id === undefined ? click : candidates[0];
  const address = link === undefined ? named : toAddress(link);
  const isAllowed = links?.some((domain) => normalizeDomain(domain) === address?.domain) ?? true;
  if (!isAllowed) throw problems.otherDomain(links ?? []);
  // If no click of the named recipient is found, nothing shows that they permit tracking, so the conversion is
  // anonymous.
  const isUnknown = recipient !== undefined && click === undefined;
  const isAnonymous =
    body.anonymous === true || refusesTracking(request.headers) || named?.isAnonymous === true || isUnknown;
  // If the conversion names only its link, the last click may be another visitor's, so no network is told of that
  // visitor.
  const isVisitorKnown = link === undefined && click !== undefined && !isAnonymous;
  return {
    name,
    ...money,
    occurred_at: isoTime(occurredAt),
    ...omitUndefined({ domain: address?.domain, short_code: address?.short_code, click: click?.position, external_id }),
    ...(isAnonymous ? { anonymous: true as const } : {}),
    channels:
      isVisitorKnown && (money.value ?? 0) >= 0
        ? context.delivery.takeClicks.filter((channel) => takesConversion(channel, name))
        : [],
    ...omitUndefined({ code: isVisitorKnown ? click.code : undefined }),
  };
}

/** True if the channel is an ads network that has a name for these conversions. */
function takesConversion(channel: string, name: string): boolean {
  return channel === "ads-snap" ? SNAP_NAMES.has(name) : channel.startsWith("ads");
}

/** Reads the clicks that may have led to a conversion. Throws the problem 404 for an unknown click. */
async function readCandidates(context: HttpContext, { click_id, link, recipient = "" }: ConversionBody) {
  const { store } = context.eventLog;
  if (link !== undefined) return readLinkClicks(context, toAddress(link));
  const { position } = await store.head();
  if (click_id === undefined) {
    await context.projector.until(position);
    return readRecipientClicks(context, recipientAmong(context.projector.state("contacts"), recipient));
  }
  const event = await findEventNear(toReading({ store, position }), click_id.toLowerCase(), CLOCKS_DIFFER_MS);
  if (event?.type !== "LinkClicked") throw problems.unknownClick();
  return readClicksAt(context, [event.position]);
}

function toAddress(link: string) {
  const { domain, shortCode: short_code } = normalizeLink(...splitLink(link));
  return { domain, short_code };
}

/** Reads value and currency without loss, in smallest units. Throws the problem 422. */
function readMoney({ name, value, amount, currency }: ConversionBody): { value?: number; currency?: string } {
  const given = value ?? amount;
  if (value !== undefined && amount !== undefined) throw refuse("/amount", "Expected either value or amount");
  if (given === undefined && name === "Purchase") throw refuse("/value", "Expected a value, which Meta requires");
  if (given === undefined && currency === undefined) return {};
  if (given === undefined) throw refuse("/value", "Expected a value beside the currency");
  if (currency === undefined) throw refuse("/currency", "Expected a currency beside the value");
  if (!isCurrency(currency)) throw refuse("/currency", "Expected a currency of ISO 4217");
  const units = amount ?? parseAmount(value!, currency);
  if (units !== undefined) return { value: units, currency };
  throw refuse("/value", `Expected a decimal up to ${formatAmount(AMOUNT_MAX, currency)}`);
}

/**
 * Returns the idempotency key of a conversion with an external id, the same for all callers. The log holds only keyed
 * hashes of it, because order numbers can be guessed.
 */
function toKey({ hashesOf }: HttpContext, body: ConversionBody, externalId: string) {
  const [named = ""] = hashesOf({ id: JSON.stringify([body.name, externalId]) });
  return { key: `conversion/${named}`, digest: hash("sha256", named + JSON.stringify(body)) };
}

function toNotification({ delivery }: HttpContext, conversion: DataOf<"ConversionRecorded">): NewEvent {
  if (!delivery.configured.includes("chat")) throw problems.notConfigured("chat");
  const { name, value, currency, domain, short_code = "" } = conversion;
  const worth = value === undefined ? "" : ` of ${formatAmount(value, currency!)} ${currency}`;
  const by = domain === undefined ? "" : ` by ${linkKey(domain, short_code)}`;
  return {
    type: "NotificationRequested",
    data: { message: `${name}${worth}${by}`, service: "conversions", level: "success" },
  };
}
