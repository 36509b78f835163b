import { rawNumber } from "../../platform/money.ts";
import type { Channel } from "../network.ts";
import { JSON_BODY } from "../safe-fetch.ts";
import { createAdsChannel, type AdsAccess, type AdVisit } from "./ads-channel.ts";

/** Creates the ads channel for version 3 of Snap's Conversions API. */
export function createSnapChannel(access: AdsAccess): Channel {
  const { pixelId, accessToken, baseUrl, safeFetch } = access;
  // Snap accepts the access token only in the address.
  const query = () => `access_token=${encodeURIComponent(accessToken.reveal())}`;
  const url = `${baseUrl}/v3/${encodeURIComponent(pixelId)}/events`;
  return createAdsChannel(access, {
    name: "ads-snap",
    network: "snap",
    title: "Snap",
    settings: "SNAP_PIXEL_ID and SNAP_ACCESS_TOKEN",
    needsAddress: true,
    toEvent,
    // Snap checks test events at another address:
    // https://developers.snap.com/api/marketing-api/Conversions-API/VerifySetUp
    request: (events, { isTest, timeoutMs }) =>
      safeFetch(`${url}${isTest ? "/validate" : ""}?${query()}`, {
        method: "POST",
        headers: JSON_BODY,
        body: `{"data":[${events.join(",")}]}`,
        timeoutMs,
      }),
  });
}

/**
 * Snap's names of conversions, by the names that Meta gives them. Snap refuses other names, and lists none for a Lead:
 * https://developers.snap.com/api/marketing-api/Conversions-API/Parameters
 */
export const SNAP_NAMES: ReadonlyMap<string, string> = new Map([
  ["Purchase", "PURCHASE"],
  ["ViewContent", "VIEW_CONTENT"],
  ["Search", "SEARCH"],
  ["AddToCart", "ADD_CART"],
  ["AddToWishlist", "ADD_TO_WISHLIST"],
  ["InitiateCheckout", "START_CHECKOUT"],
  ["AddPaymentInfo", "ADD_BILLING"],
  ["CompleteRegistration", "SIGN_UP"],
  ["Subscribe", "SUBSCRIBE"],
  ["StartTrial", "START_TRIAL"],
]);

/** Returns the event of a visit, or of a conversion that has a name in {@link SNAP_NAMES}. */
function toEvent({ id, at, url, ip, userAgent, ids, conversion }: AdVisit) {
  const { value, currency } = conversion ?? {};
  return {
    event_name: conversion === undefined ? "PAGE_VIEW" : SNAP_NAMES.get(conversion.name),
    event_time: Math.floor(at / 1000),
    event_id: id,
    event_source_url: url,
    action_source: "WEB",
    user_data: { client_ip_address: ip, client_user_agent: userAgent, sc_click_id: ids.sc_click_id },
    // JSON omits the member if it is undefined.
    custom_data: value === undefined ? undefined : { value: rawNumber(value), currency },
  };
}
