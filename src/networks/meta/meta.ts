import { Type } from "@sinclair/typebox";
import { secret, type Secret } from "../../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules, parseRetryAfter, parseAnswer } from "../classify-answer.ts";
import * as graph from "../graph-api-answers.ts";
import { deliverBatch, EVENTS_MAX } from "./batch.ts";
import type { Channel, Click, DispatchResult, Dispatch } from "../network.ts";
import { JSON_BODY, type SafeFetch } from "../safe-fetch.ts";

/** Meta refuses a request that holds an event older than this. */
const EVENT_AGE_MS_MAX = 7 * 24 * 60 * 60_000;

/** Meta knows an event by its id for 48 hours; an hour less, for clocks that differ and requests on their way. */
const RECOGNISES_MS = 47 * 60 * 60_000;

type Skipped = Extract<DispatchResult, { outcome: "skipped" }>;

/** The Meta Conversions API as the ads channel. Asking it to send anything but clicks and tests is a defect: it throws. */
export function createMetaChannel(options: {
  readonly pixelId: string;
  readonly accessToken: Secret;
  /** Shows all events under "Test events" instead of counting them. */
  readonly testEventCode?: string | undefined;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}): Channel {
  const { accessToken, testEventCode, safeFetch } = options;
  const pixelUrl = `${options.baseUrl}/${graph.API_VERSION}/${encodeURIComponent(options.pixelId)}`;

  async function post(events: readonly string[], timeoutMs: number): Promise<DispatchResult> {
    // The token goes into the body because URLs end up in logs of proxies.
    const more = { test_event_code: testEventCode, access_token: accessToken.reveal() };
    const body = `{"data":[${events.join(",")}],${JSON.stringify(more).slice(1)}`;
    const request = safeFetch(`${pixelUrl}/events`, { method: "POST", headers: JSON_BODY, body, timeoutMs });
    return toDispatchResult(request, metaAnswers(events.length), true);
  }

  return {
    name: "ads",
    network: "meta",
    // The pixel too: a wrong one suspends the channel as a wrong token does.
    credential: secret(`${options.pixelId}\n${accessToken.reveal()}`),
    recognisesMs: RECOGNISES_MS,
    batch: {
      max: EVENTS_MAX,
      async send(clicks, { timeoutMs, now, goesOn }) {
        const wanted = clicks.map((click) => toMetaEvent(click, now));
        const events = wanted.flatMap((event) => ("outcome" in event ? [] : [JSON.stringify(event)]));
        const results = await deliverBatch(events, { timeoutMs, post, goesOn });
        let next = 0;
        return wanted.flatMap((event) => ("outcome" in event ? [event] : results.slice(next, ++next)));
      },
    },
    async send(dispatch, { timeoutMs, now }) {
      const { kind } = dispatch;
      if (kind !== "click" && kind !== "test") throw new TypeError(`the ads channel delivers no ${kind}`);
      const event = kind === "test" ? testEvent(dispatch, testEventCode) : toMetaEvent(dispatch, now);
      return "outcome" in event ? event : post([JSON.stringify(event)], timeoutMs);
    },
    check: (timeoutMs) =>
      checked(async () => {
        const headers = { authorization: `Bearer ${accessToken.reveal()}` };
        const { status } = await safeFetch(`${pixelUrl}?fields=id`, { method: "GET", headers, timeoutMs });
        if (status === 200) return { ok: true, detail: "the pixel answers to the access token" };
        return { ok: false, detail: `Meta answered ${status}: check META_PIXEL_ID and META_ACCESS_TOKEN` };
      }),
  };
}

/** A click as an event, or as skipped where Meta would refuse it. */
function toMetaEvent(click: Click, now: number): MetaEvent | Skipped {
  if (click.userAgent === undefined || click.userAgent.trim() === "") {
    return { outcome: "skipped", reason: "no_user_agent" };
  }
  if (now - Date.parse(click.time) > EVENT_AGE_MS_MAX) return { outcome: "skipped", reason: "too_old" };
  return pageView(click, click.userAgent, now);
}

const RECEIVED = Type.Object({
  events_received: Type.Integer(),
  fbtrace_id: Type.Optional(Type.String({ maxLength: 100 })),
});

/**
 * What an answer of the Conversions API means for all `events` of its request: Meta takes all of them or none. It
 * recognises a repeat by its `event_id`, so all that may pass is sent again.
 * https://developers.facebook.com/docs/graph-api/guides/error-handling
 */
export function metaAnswers(events = 1): AnswerRules {
  return {
    accepted({ status, text, headers }) {
      const received = status === 200 ? parseAnswer(RECEIVED, text) : undefined;
      if (received === undefined || received.events_received < events) return undefined;
      return { networkId: received.fbtrace_id, pauseMs: graph.usagePauseMs(headers) };
    },
    describe: (answer) => graph.describe("Meta", answer),
    isRateLimit: graph.isRateLimit,
    isUncertain: (answer) => graph.isPassing(answer) || (answer.status < 400 && graph.parseError(answer) === undefined),
    refusesChannel: graph.isCredentialFault,
    retryAfterMs: (answer) =>
      graph.isRateLimit(answer)
        ? graph.rateLimitPauseMs(answer.headers)
        : (parseRetryAfter(answer.headers) ?? graph.usagePauseMs(answer.headers)),
  };
}

/**
 * The click id in an address, as it stands there: Meta wants it neither decoded nor lower-cased. For any other character,
 * and for a whole `_fbc` cookie in its place, Meta refuses the event and all others of the request (code 100, 2804001).
 */
const CLICK_ID = /^[^#?]*\?(?:[^#]*&)?fbclid=([A-Za-z0-9_-]+)(?=[&#]|$)/;

/**
 * A click as a PageView. No `external_id`: tying the visitor to a person of another network needs that person's
 * consent. The time is the click's, not the sending's, for Meta attributes by it; but never after `now` (ms since the
 * epoch), as it would be where the clock was set back since: a time to come makes Meta refuse the whole request.
 */
export function pageView(click: Click, userAgent: string, now: number): MetaEvent {
  const clickedAt = Math.min(now, Date.parse(click.time));
  const fbclid = CLICK_ID.exec(click.normalizedUrl)?.[1];
  return serverEvent("PageView", click.id, clickedAt, click.normalizedUrl, {
    client_user_agent: userAgent,
    client_ip_address: click.ip,
    // 1: made by a server without a cookie,
    // https://developers.facebook.com/docs/marketing-api/conversions-api/parameters/fbp-and-fbc
    fbc: fbclid === undefined ? undefined : `fb.1.${clickedAt}.${fbclid}`,
  });
}

/**
 * A test as an event. With a test code Meta shows it under "Test events" only, so it can be a PageView; without one it
 * counts for real, so it goes under a name of its own, which no campaign optimises for and no report takes for a visit.
 * The visitor is invented from what RFC 2606 and RFC 5737 reserve: Meta refuses events without a visitor.
 */
export function testEvent(test: Extract<Dispatch, { kind: "test" }>, testEventCode: string | undefined): MetaEvent {
  const name = testEventCode === undefined ? "ReachlogTest" : "PageView";
  return serverEvent(name, test.id, Date.parse(test.time), "https://example.com/reachlog-test", {
    client_user_agent: "reachlog",
    client_ip_address: "192.0.2.1",
  });
}

/** One event of a server, https://developers.facebook.com/docs/marketing-api/conversions-api/parameters */
function serverEvent(name: string, id: string, at: number, url: string, user: Readonly<Record<string, unknown>>) {
  return {
    event_name: name,
    /** Unix seconds. */
    event_time: Math.floor(at / 1000),
    /** With the name what Meta recognises a repeat by, for 48 hours. */
    event_id: id,
    event_source_url: url,
    action_source: "website",
    // JSON leaves out what is undefined.
    user_data: user,
  };
}

export type MetaEvent = ReturnType<typeof serverEvent>;
