import { parseAmount } from "../../platform/money.ts";
import type { Channel } from "../network.ts";
import { JSON_BODY } from "../safe-fetch.ts";
import { createAdsChannel, type AdsAccess, type AdVisit } from "./ads-channel.ts";

/** Creates the ads channel for OpenAI's Conversions API. */
export function createOpenAiAdsChannel(access: AdsAccess): Channel {
  const { pixelId, accessToken, baseUrl, safeFetch } = access;
  const url = `${baseUrl}/v1/events?pid=${encodeURIComponent(pixelId)}`;
  return createAdsChannel(access, {
    name: "ads-openai",
    network: "openai",
    title: "OpenAI",
    settings: "OPENAI_ADS_PIXEL_ID and OPENAI_ADS_API_KEY",
    toEvent,
    request: (events, { isTest, timeoutMs }) =>
      safeFetch(url, {
        method: "POST",
        headers: { ...JSON_BODY, authorization: `Bearer ${accessToken.reveal()}` },
        body: `{"validate_only":${isTest},"events":[${events.join(",")}]}`,
        timeoutMs,
      }),
  });
}

/** OpenAI's type of event and the shape of its data, by the name that Meta gives the event. */
const TYPES: ReadonlyMap<string, readonly [type: string, shape: string]> = new Map([
  ["Purchase", ["order_created", "contents"]],
  ["ViewContent", ["contents_viewed", "contents"]],
  ["AddToCart", ["items_added", "contents"]],
  ["InitiateCheckout", ["checkout_started", "contents"]],
  ["Lead", ["lead_created", "customer_action"]],
  ["CompleteRegistration", ["registration_completed", "customer_action"]],
  ["Schedule", ["appointment_scheduled", "customer_action"]],
  ["Subscribe", ["subscription_created", "plan_enrollment"]],
  ["StartTrial", ["trial_started", "plan_enrollment"]],
]);

/** Returns the event of a visit or a conversion: https://developers.openai.com/ads/supported-events */
function toEvent({ id, at, url, ip, userAgent, ids, conversion }: AdVisit) {
  const { name = "", value, currency } = conversion ?? {};
  const [type, shape] =
    conversion === undefined ? ["page_viewed", "contents"] : (TYPES.get(name) ?? ["custom", "custom"]);
  return {
    id,
    type,
    timestamp_ms: at,
    // JSON omits the member if it is undefined.
    custom_event_name: type === "custom" ? name : undefined,
    oppref: ids.oppref,
    source_url: url,
    action_source: "web",
    user: { ip_address: ip, user_agent: userAgent },
    data: {
      type: shape,
      amount: value === undefined || currency === undefined ? undefined : parseAmount(value, currency),
      currency,
    },
  };
}
