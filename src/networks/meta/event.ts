import type { Click, Dispatch } from "../network.ts";

/** The serialized events of one request; the token goes into the body because URLs end up in logs of proxies. */
export function metaBody(
  events: readonly string[],
  { accessToken, testEventCode }: { readonly accessToken: string; readonly testEventCode: string | undefined },
): string {
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

/** Meta wants the value as it stood in the address: neither decoded nor lower-cased. */
function rawFbclid(url: string): string | undefined {
  return /^[^#?]*\?(?:[^#]*&)?fbclid=([^&#]+)/.exec(url)?.[1];
}
