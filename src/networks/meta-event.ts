import type { Click, Dispatch } from "./network.ts";

/** One server event, https://developers.facebook.com/docs/marketing-api/conversions-api/parameters */
export interface MetaEvent {
  readonly event_name: string;
  /** Unix seconds. */
  readonly event_time: number;
  /** With `event_name` what Meta de-duplicates by, for 48 hours. */
  readonly event_id: string;
  readonly event_source_url: string;
  readonly action_source: "website";
  readonly user_data: {
    readonly client_user_agent: string;
    readonly client_ip_address?: string;
    readonly fbc?: string;
  };
}

/** The serialized events of one request; the token goes into the body because URLs end up in logs of proxies. */
export function metaBody(
  events: readonly string[],
  { accessToken, testEventCode }: { readonly accessToken: string; readonly testEventCode: string | undefined },
): string {
  // JSON leaves out what is undefined.
  const more = { test_event_code: testEventCode, access_token: accessToken };
  return `{"data":[${events.join(",")}],${JSON.stringify(more).slice(1)}`;
}

/**
 * A click as a PageView. No `external_id`: tying the visitor to a person of another network needs that person's
 * consent. The time is the click's, not the sending's, for Meta attributes by it; but never after `now` (ms since the
 * epoch), as it would be where the clock was set back since: a time to come makes Meta refuse the whole request.
 */
export function pageView(click: Click, userAgent: string, now: number): MetaEvent {
  const clickedAt = Math.min(now, Date.parse(click.time));
  const fbclid = rawFbclid(click.normalizedUrl);
  return {
    event_name: "PageView",
    event_time: Math.floor(clickedAt / 1000),
    event_id: click.id,
    event_source_url: click.normalizedUrl,
    action_source: "website",
    user_data: {
      client_user_agent: userAgent,
      ...(click.ip === undefined ? {} : { client_ip_address: click.ip }),
      // 1: made by a server without a cookie, https://developers.facebook.com/docs/marketing-api/conversions-api/parameters/fbp-and-fbc
      ...(fbclid === undefined ? {} : { fbc: `fb.1.${clickedAt}.${fbclid}` }),
    },
  };
}

/**
 * A test as an event. With a test code Meta shows it under "Test events" only, so it can be a PageView; without one it
 * counts for real, so it goes under a name of its own, which no campaign optimises for and no report takes for a visit.
 * The visitor is invented from what RFC 2606 and RFC 5737 reserve: Meta refuses events without a visitor.
 */
export function testEvent(test: Extract<Dispatch, { kind: "test" }>, testEventCode: string | undefined): MetaEvent {
  return {
    event_name: testEventCode === undefined ? "ReachlogTest" : "PageView",
    event_time: Math.floor(Date.parse(test.time) / 1000),
    event_id: test.id,
    event_source_url: "https://example.com/reachlog-test",
    action_source: "website",
    user_data: {
      client_user_agent: "reachlog",
      client_ip_address: "192.0.2.1",
    },
  };
}

/** Meta wants the value as it stood in the address: neither decoded nor lower-cased. */
function rawFbclid(url: string): string | undefined {
  return /^[^#?]*\?(?:[^#]*&)?fbclid=([^&#]+)/.exec(url)?.[1];
}
