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
 * Returns the event of a visit or a purchase; no other conversion comes here:
 * https://developers.snap.com/api/marketing-api/Conversions-API/UsingTheAPI
 */
function toEvent({ id, at, url, ip, userAgent, ids, conversion }: AdVisit) {
  const { value, currency } = conversion ?? {};
  return {
    event_name: conversion === undefined ? "PAGE_VIEW" : "PURCHASE",
    event_time: Math.floor(at / 1000),
    event_id: id,
    event_source_url: url,
    action_source: "WEB",
    user_data: { client_ip_address: ip, client_user_agent: userAgent, sc_click_id: ids.sc_click_id },
    // JSON omits the member if it is undefined.
    custom_data: value === undefined ? undefined : { value: rawNumber(value), currency },
  };
}
