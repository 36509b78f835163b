import { Type } from "@sinclair/typebox";
import { secret, type Secret } from "../../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules, parseRetryAfter, parseAnswer } from "../classify-answer.ts";
import * as graph from "../graph-api-answers.ts";
import { deliverBatch, EVENTS_MAX } from "./batch.ts";
import type { Channel, Click, DispatchResult, Dispatch } from "../network.ts";
import { JSON_BODY, type SafeFetch } from "../safe-fetch.ts";

/** Meta refuses a request that holds an event older than this. */
const EVENT_AGE_MS_MAX = 7 * 24 * 60 * 60_000;

/** Meta knows an event by its id for 48 hours; an hour less here, for clocks that differ and requests under way. */
const RECOGNISES_MS = 47 * 60 * 60_000;

type Skipped = Extract<DispatchResult, { outcome: "skipped" }>;

/**
 * The Meta Conversions API as the ads channel. It throws if it is asked to send anything but clicks and tests, which is
 * a defect.
 */
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
    // Includes the pixel: a wrong one suspends the channel as a wrong token does.
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

/** Converts a click to an event, or skips it if Meta would refuse it. */
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
 * How an answer of the Conversions API is read, for all `events` of its request: Meta accepts all or none. It knows a
 * repeat by `event_id`, so passing faults are retried.
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
 * The click id as the address holds it: Meta requires it neither decoded nor lower-cased. For any other character, or a
 * whole `_fbc` cookie instead, Meta refuses the event and all others of the request (code 100, 2804001).
 */
const CLICK_ID = /^[^#?]*\?(?:[^#]*&)?fbclid=([A-Za-z0-9_-]+)(?=[&#]|$)/;

/**
 * Converts a click to a PageView; `now` is in ms since the epoch. It has no `external_id`, because tying the visitor to
 * a person of another network needs that person's consent.
 */
export function pageView(click: Click, userAgent: string, now: number): MetaEvent {
  // Meta attributes by the time of the click, not of the sending. If the clock was set back since, it may lie after
  // `now`: a future time makes Meta refuse the whole request.
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
 * Converts a test to an event. With a test code Meta shows it under "Test events" only, so it is a PageView. Without
 * one it counts for real, so it has a separate name that no campaign optimises for and no report takes for a visit.
 */
export function testEvent(test: Extract<Dispatch, { kind: "test" }>, testEventCode: string | undefined): MetaEvent {
  const name = testEventCode === undefined ? "ReachlogTest" : "PageView";
  // The visitor is invented from what RFC 2606 and RFC 5737 reserve: Meta refuses events without a visitor.
  return serverEvent(name, test.id, Date.parse(test.time), "https://example.com/reachlog-test", {
    client_user_agent: "reachlog",
    client_ip_address: "192.0.2.1",
  });
}

/** Returns one server event, https://developers.facebook.com/docs/marketing-api/conversions-api/parameters */
function serverEvent(name: string, id: string, at: number, url: string, user: Readonly<Record<string, unknown>>) {
  return {
    event_name: name,
    /** Unix seconds. */
    event_time: Math.floor(at / 1000),
    /** Together with the name, identifies a repeat to Meta for 48 hours. */
    event_id: id,
    event_source_url: url,
    action_source: "website",
    // JSON leaves out undefined members.
    user_data: user,
  };
}

export type MetaEvent = ReturnType<typeof serverEvent>;
