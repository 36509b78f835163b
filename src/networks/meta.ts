import { secret, type Secret } from "../platform/secret.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import { GRAPH_VERSION } from "./graph.ts";
import { classifyMetaAnswer } from "./meta-answers.ts";
import { deliverBatch, EVENTS_MAX } from "./meta-batch.ts";
import { metaBody, pageView, testEvent, type AdsDispatch, type MetaEvent } from "./meta-event.ts";
import type { Channel, Click, Dispatch, DispatchResult } from "./network.ts";
import { JSON_BODY, type SafeFetch } from "./safe-fetch.ts";

/** Meta refuses a request that holds an event older than this. */
const EVENT_AGE_MS_MAX = 7 * 24 * 60 * 60_000;

/** Meta knows an event by its id for 48 hours; an hour less, for clocks that differ and requests on their way. */
const RECOGNISES_MS = 47 * 60 * 60_000;

type Skipped = Extract<DispatchResult, { outcome: "skipped" }>;

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

  async function post(events: readonly string[], timeoutMs: number): Promise<DispatchResult> {
    try {
      const answer = await safeFetch(`${pixelUrl}/events`, {
        method: "POST",
        headers: JSON_BODY,
        body: metaBody(events, { accessToken: accessToken.reveal(), testEventCode }),
        timeoutMs,
      });
      return classifyMetaAnswer(answer, events.length);
    } catch (fault) {
      return resultOfFault(fault, { deduplicates: true });
    }
  }

  return {
    name: "ads",
    network: "meta",
    // The pixel too: a wrong one stops the channel as a wrong token does.
    credential: secret(`${options.pixelId}\n${accessToken.reveal()}`),
    recognisesMs: RECOGNISES_MS,
    batch: {
      max: EVENTS_MAX,
      async send(clicks, { timeoutMs, now, signal }) {
        const wanted = clicks.map((click) => eventOf(click, now));
        const events = wanted.flatMap((event) => ("outcome" in event ? [] : [JSON.stringify(event)]));
        const results = await deliverBatch(events, { timeoutMs, post, signal });
        let next = 0;
        return wanted.flatMap((event) => ("outcome" in event ? [event] : results.slice(next, ++next)));
      },
    },
    async send(dispatch, { timeoutMs, now }) {
      const wanted = adsDispatch(dispatch);
      const event = wanted.kind === "test" ? testEvent(wanted, testEventCode) : eventOf(wanted, now);
      return "outcome" in event ? event : post([JSON.stringify(event)], timeoutMs);
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

/** A click as an event, or as skipped where Meta would refuse it. */
function eventOf(click: Click, now: number): MetaEvent | Skipped {
  if (click.userAgent === undefined || click.userAgent.trim() === "") {
    return { outcome: "skipped", reason: "no_user_agent" };
  }
  if (now - Date.parse(click.time) > EVENT_AGE_MS_MAX) return { outcome: "skipped", reason: "too_old" };
  return pageView(click, click.userAgent, now);
}

function adsDispatch(dispatch: Dispatch): AdsDispatch {
  if (dispatch.kind === "click" || dispatch.kind === "test") return dispatch;
  throw new TypeError(`the ads channel delivers no ${dispatch.kind}`);
}
