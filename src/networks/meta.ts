import type { Secret } from "../secret.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import { classifyMetaAnswer } from "./meta-answers.ts";
import { metaBody, pageView, testEvent, type AdsDispatch, type MetaEvent } from "./meta-event.ts";
import type { Channel, Dispatch, DispatchResult } from "./network.ts";
import type { SafeFetch } from "./safe-fetch.ts";

/** Published 2026-07-29; a version lives two years, https://developers.facebook.com/docs/graph-api/changelog */
const GRAPH_VERSION = "v26.0";

/** Meta refuses a request that holds an event older than this. */
const EVENT_AGE_MS_MAX = 7 * 24 * 60 * 60_000;

export interface MetaOptions {
  readonly pixelId: string;
  readonly accessToken: Secret;
  /** Shows all events under "Test events" instead of counting them. */
  readonly testEventCode?: string | undefined;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}

/** The Meta Conversions API as the ads channel. Asking it to send anything but clicks and tests is a defect: it throws. */
export function createMetaChannel(options: MetaOptions): Channel {
  const { accessToken, testEventCode, safeFetch } = options;
  const pixelUrl = `${options.baseUrl}/${GRAPH_VERSION}/${encodeURIComponent(options.pixelId)}`;

  async function post(event: MetaEvent, timeoutMs: number): Promise<DispatchResult> {
    try {
      const answer = await safeFetch(`${pixelUrl}/events`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: metaBody([event], {
          accessToken: accessToken.reveal(),
          testEventCode,
        }),
        timeoutMs,
      });
      return classifyMetaAnswer(answer);
    } catch (fault) {
      return resultOfFault(fault, { deduplicates: true });
    }
  }

  return {
    name: "ads",
    network: "meta",
    async send(dispatch, { timeoutMs, now }) {
      const wanted = adsDispatch(dispatch);
      if (wanted.kind === "test") return post(testEvent(wanted, testEventCode), timeoutMs);
      if (wanted.userAgent === undefined || wanted.userAgent.trim() === "") {
        return { outcome: "skipped", reason: "no_user_agent" };
      }
      if (now - Date.parse(wanted.time) > EVENT_AGE_MS_MAX) return { outcome: "skipped", reason: "too_old" };
      return post(pageView(wanted, wanted.userAgent), timeoutMs);
    },
    async check(timeoutMs) {
      try {
        const { status } = await safeFetch(`${pixelUrl}?fields=id`, {
          method: "GET",
          headers: { authorization: `Bearer ${accessToken.reveal()}` },
          timeoutMs,
        });
        if (status === 200) return { ok: true, detail: "the pixel answers to the access token" };
        return {
          ok: false,
          detail: `Meta answered ${status}: check META_PIXEL_ID and META_ACCESS_TOKEN`,
        };
      } catch (fault) {
        return checkOfFault(fault);
      }
    },
  };
}

function adsDispatch(dispatch: Dispatch): AdsDispatch {
  if (dispatch.kind === "click" || dispatch.kind === "test") return dispatch;
  throw new TypeError(`the ads channel delivers no ${dispatch.kind}`);
}
