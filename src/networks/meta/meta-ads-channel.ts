import { Type } from "@sinclair/typebox";
import { rawNumber } from "../../platform/money.ts";
import { secret, type Secret } from "../../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules, parseRetryAfter, parseAnswer } from "../classify-answer.ts";
import * as graph from "../classify-graph-api-answer.ts";
import { deliverAmongSkipped, EVENT_AGE_MS_MAX, EVENTS_MAX, type Skipped } from "./deliver-event-batch.ts";
import type { Channel, Click, Conversion, DispatchResult, Dispatch } from "../network.ts";
import { JSON_BODY, type SafeFetch } from "../safe-fetch.ts";

/**
 * Time in ms for which Meta recognises a repeated event by its id. Meta says 48 hours; this is an hour less, because
 * clocks differ and requests take time.
 */
const RECOGNISES_MS = 47 * 60 * 60_000;

/**
 * Asks Meta to limit its use of an event if the visitor's US state has such a law. Zeros let Meta find the state, since
 * Meta's own lists of states differ. https://developers.facebook.com/docs/marketing-apis/data-processing-options
 */
const LIMITED_DATA_USE = {
  data_processing_options: ["LDU"],
  data_processing_options_country: 0,
  data_processing_options_state: 0,
};

/**
 * Creates the ads channel for the Meta Conversions API. It throws if it is asked to send anything but clicks, conversions
 * and tests, which is a defect.
 */
export function createMetaChannel(options: {
  readonly pixelId: string;
  readonly accessToken: Secret;
  /** Code with which Meta shows all events under "Test events" instead of counting them. */
  readonly testEventCode?: string | undefined;
  /** True to ask Meta for Limited Data Use, which it applies to visitors in states of the US with such a law. */
  readonly limitsDataUse?: boolean;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}): Channel {
  const { accessToken, testEventCode, safeFetch } = options;
  const processing = options.limitsDataUse === true ? LIMITED_DATA_USE : {};
  const serialize = (event: MetaEvent): string => JSON.stringify({ ...event, ...processing });
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
    // The credential includes the pixel, because a wrong pixel suspends the channel, as a wrong token does, until the
    // pixel is changed.
    credential: secret(`${options.pixelId}\n${accessToken.reveal()}`),
    recognisesMs: RECOGNISES_MS,
    batch: {
      max: EVENTS_MAX,
      async send(dispatches, { timeoutMs, now, goesOn }) {
        const prepared = dispatches.map((dispatch) => {
          const event = toMetaEvent(dispatch, now);
          return "outcome" in event ? event : serialize(event);
        });
        return deliverAmongSkipped(prepared, { timeoutMs, post, goesOn });
      },
    },
    async send(dispatch, { timeoutMs, now }) {
      const { kind } = dispatch;
      if (kind !== "click" && kind !== "conversion" && kind !== "test")
        throw new TypeError(`the ads channel delivers no ${kind}`);
      const event = kind === "test" ? testEvent(dispatch, testEventCode) : toMetaEvent(dispatch, now);
      return "outcome" in event ? event : post([serialize(event)], timeoutMs);
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

/** Converts a dispatch to an event of the Conversions API, or to the result `skipped` if Meta would refuse it. */
function toMetaEvent(dispatch: Click | Conversion, now: number): MetaEvent | Skipped {
  const click = dispatch.kind === "click" ? dispatch : dispatch.click;
  if (click.userAgent === undefined || click.userAgent.trim() === "") {
    return { outcome: "skipped", reason: "no_user_agent" };
  }
  if (now - Date.parse(dispatch.time) > EVENT_AGE_MS_MAX) return { outcome: "skipped", reason: "too_old" };
  const view = pageView(click, click.userAgent, now);
  return dispatch.kind === "click" ? view : { ...view, ...conversionMembers(dispatch, now) };
}

/**
 * Returns the members of a conversion's event that differ from the event of its click. The visitor's members are the
 * same.
 */
function conversionMembers({ name, id, time, value, currency }: Conversion, now: number) {
  const at = Math.floor(Math.min(now, Date.parse(time)) / 1000);
  const custom_data = value === undefined ? undefined : { value: rawNumber(value), currency };
  return { event_name: name, event_time: at, event_id: id, custom_data };
}

const RECEIVED = Type.Object({
  events_received: Type.Integer(),
  fbtrace_id: Type.Optional(Type.String({ maxLength: 100 })),
});

/**
 * Rules that read an answer of the Conversions API, which applies to all `events` of its request. Meta knows a repeat
 * by `event_id`, so passing faults are retried. https://developers.facebook.com/docs/graph-api/guides/error-handling
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
 * Matches a click id as an address holds it; Meta requires it neither decoded nor lower-cased. For any other character,
 * or a whole `_fbc` cookie instead, Meta refuses all events of the request (code 100, 2804001).
 */
const CLICK_ID = /^[^#?]*\?(?:[^#]*&)?fbclid=([A-Za-z0-9_-]+)(?=[&#]|$)/;

/** Maximum time in ms by which a cookie may seem to be made after the click. Meta refuses a cookie from the future. */
const COOKIE_AHEAD_MS_MAX = 60_000;

/** Returns a cookie of Meta's pixel, byte for byte. Undefined if the visitor's clock was wrong when it was made. */
function keepCookie(cookie: string | undefined, clickedAt: number): string | undefined {
  return Number(cookie?.split(".")[2]) <= clickedAt + COOKIE_AHEAD_MS_MAX ? cookie : undefined;
}

/**
 * Converts a click to Meta's PageView; `now` is in ms since the epoch. It has no `external_id`, because tying the
 * visitor to a person of another network needs that person's consent.
 */
export function pageView(click: Click, userAgent: string, now: number): MetaEvent {
  // Meta attributes by the time of the click. After the clock was set back, a click may seem later than `now`; Meta
  // would refuse the whole request for a time in the future.
  const clickedAt = Math.min(now, Date.parse(click.time));
  const { ids = {} } = click;
  const fbclid = ids.fbclid ?? CLICK_ID.exec(click.normalizedUrl)?.[1];
  const fbc = keepCookie(ids.fbc, clickedAt);
  // If the click came by a newer ad than the one in the cookie, the newer one replaces it.
  const isCurrent = fbclid === undefined || fbc?.split(".")[3] === fbclid;
  return serverEvent("PageView", click.id, clickedAt, click.normalizedUrl, {
    client_user_agent: userAgent,
    client_ip_address: click.ip,
    // The 1 tells Meta that a server made this value, and no cookie:
    // https://developers.facebook.com/docs/marketing-api/conversions-api/parameters/fbp-and-fbc
    fbc: isCurrent ? fbc : `fb.1.${clickedAt}.${fbclid}`,
    fbp: keepCookie(ids.fbp, clickedAt),
  });
}

/**
 * Returns the Meta event of a channel test. With a test event code Meta does not count it, so it is a PageView. Without
 * a code Meta counts it, so a separate name keeps it out of campaigns and of reports on visits.
 */
export function testEvent(test: Extract<Dispatch, { kind: "test" }>, testEventCode: string | undefined): MetaEvent {
  const name = testEventCode === undefined ? "ReachlogTest" : "PageView";
  // Meta refuses events without a visitor, so this one has an address and an IP address that are reserved for examples
  // (RFC 2606, RFC 5737).
  return serverEvent(name, test.id, Date.parse(test.time), "https://example.com/reachlog-test", {
    client_user_agent: "reachlog",
    client_ip_address: "192.0.2.1",
  });
}

/**
 * Creates a server event of the Conversions API,
 * https://developers.facebook.com/docs/marketing-api/conversions-api/parameters
 */
function serverEvent(name: string, id: string, at: number, url: string, user: Readonly<Record<string, unknown>>) {
  return {
    event_name: name,
    /** Time of the event, in Unix seconds. */
    event_time: Math.floor(at / 1000),
    /** Id of the event. Together with the event's name, Meta recognises a repeat by it for 48 hours. */
    event_id: id,
    event_source_url: url,
    action_source: "website",
    // JSON omits members that are undefined.
    user_data: user,
  };
}

export type MetaEvent = ReturnType<typeof serverEvent> & { readonly custom_data?: object | undefined };
