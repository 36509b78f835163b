import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { graphError, graphRefusal } from "./refuse-like-meta-graph-api.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { BODIES_KEPT, createRecorded } from "./record-received.ts";
import { bearerOf, isRecord, jsonOf, membersOf, withRetryAfter } from "./read-request.ts";

export interface MetaEvent {
  readonly event_name: string;
  readonly event_id?: string;
  /** Time of the event, in seconds since the epoch. */
  readonly event_time: number;
  readonly event_source_url?: string;
  readonly action_source: string;
  readonly user_data: Record<string, unknown>;
  readonly custom_data?: Record<string, unknown>;
  readonly test_event_code?: string;
}

const BATCH_MAX = 1_000;

/**
 * Time in which Meta counts an event with the same name and id only once:
 * https://developers.facebook.com/documentation/ads-commerce/conversions-api/parameters/server-event
 */
const DEDUPLICATED_MS = 48 * 3_600_000;

/** Creates the state of Meta's Conversions API with one pixel. */
export function createMetaState(clock: SandboxClock) {
  return {
    clock,
    pixelId: "1234567890123456",
    accessToken: "EAASandboxMetaToken0123456789",
    /** Bodies of the newest requests, accepted or not. */
    requests: createRecorded<unknown>(BODIES_KEPT),
    /** Number of events that Meta accepted, including repeats. */
    accepted: 0,
    /** Events that Meta counts: one for each event_name and event_id within 48 hours. */
    events: createRecorded<MetaEvent>(),
    /**
     * `event_name event_id` of each event -> the time of the first event with them. Entries are never dropped, so no
     * repeat counts as new.
     */
    seen: new Map<string, number>(),
  };
}

export type MetaState = ReturnType<typeof createMetaState>;

/** Handles events, and reads of the pixel's description: by such a read, a caller tests its token without an event. */
export function metaHandlers(state: MetaState) {
  const pixel = `${ORIGINS.meta}/:version/:pixel`;
  return [
    http.post(`${pixel}/events`, async ({ request }) => {
      const body = await jsonOf(request);
      state.requests.add(body);
      return refuse(state, request, membersOf(body)["access_token"]) ?? accept(state, membersOf(body));
    }),
    http.get(pixel, ({ request }) => refuse(state, request, undefined) ?? HttpResponse.json({ id: state.pixelId })),
  ];
}

function refuse(state: MetaState, request: Request, tokenInBody: unknown): Response | undefined {
  const token = new URL(request.url).searchParams.get("access_token") ?? tokenInBody ?? bearerOf(request);
  return graphRefusal(request, {
    isKnownToken: token === state.accessToken,
    object: state.pixelId,
    refuseToken: () => graphError(400, 190, "Invalid OAuth access token - Cannot parse access token"),
  });
}

function accept(state: MetaState, { data, test_event_code }: Readonly<Record<string, unknown>>): Response {
  if (!Array.isArray(data) || data.length < 1 || data.length > BATCH_MAX) {
    return invalid(`data wants 1 to ${BATCH_MAX} events`);
  }
  if (test_event_code !== undefined && !isTestCode(test_event_code)) return invalid("test_event_code is not a code");
  const now = state.clock.now();
  // One bad event makes Meta refuse the whole batch, of which no event is processed.
  for (const event of data as unknown[]) {
    const fault = faultOf(event, now / 1000);
    if (fault !== undefined) return invalid(fault);
    const { fbc, fbp } = (event as MetaEvent).user_data;
    if (fbc !== undefined && !isCookie(FBC, fbc, now)) return clickIdRefused();
    if (fbp !== undefined && !isCookie(FBP, fbp, now)) return invalid("fbp is not formatted correctly");
  }
  for (const event of data as MetaEvent[]) {
    countEvent(state, typeof test_event_code === "string" ? { ...event, test_event_code } : event);
  }
  return HttpResponse.json({ events_received: data.length, messages: [], fbtrace_id: "ASandboxTrace" });
}

/**
 * Counts an event unless it is a repeat. An event without an id always counts, because Meta cannot recognize its
 * repeats.
 */
function countEvent(state: MetaState, event: MetaEvent): void {
  state.accepted++;
  const now = state.clock.now();
  if (event.event_id !== undefined) {
    const key = `${event.event_name} ${event.event_id}`;
    const first = state.seen.get(key);
    if (first !== undefined && now - first < DEDUPLICATED_MS) return;
    state.seen.set(key, now);
  }
  state.events.add(event);
}

/** Counts an event of the pixel in a page, by the members of its address; returns the pixel's empty content. */
export function countPixel(state: MetaState, members: URLSearchParams): string {
  const [event_name, event_id] = [members.get("ev") ?? "PageView", members.get("eid") ?? ""];
  const event_time = Math.floor(state.clock.now() / 1000);
  countEvent(state, { event_name, event_id, event_time, action_source: "website", user_data: {} });
  return "";
}

/**
 * Form of the cookie `_fbc`: version, subdomain index, ms, click id. Meta's libraries append a part.
 * https://developers.facebook.com/documentation/ads-commerce/conversions-api/parameters/fbp-and-fbc
 */
const FBC = /^fb\.\d\.(\d{13})\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?$/;
/** Form of the cookie `_fbp`: version, subdomain index, ms, random number, and perhaps the part of Meta's libraries. */
const FBP = /^fb\.\d\.(\d{13})\.\d+(?:\.[A-Za-z0-9_-]+)?$/;

function isCookie(form: RegExp, value: unknown, now: number): boolean {
  const madeAt = typeof value === "string" ? form.exec(value)?.[1] : undefined;
  return madeAt !== undefined && Number(madeAt) <= now + FUTURE_S_MAX * 1000;
}

/** Answers as Meta does if it refuses an event's click id, seen in https://github.com/PostHog/posthog/pull/73897 */
function clickIdRefused(): Response {
  return graphError(400, 100, "Invalid parameter", {
    error_subcode: 2_804_001,
    error_user_title: "Click ID Incorrectly Formatted",
    error_user_msg: "The click ID (_fbc) parameter is not formatted correctly.",
  });
}

function isTestCode(code: unknown): boolean {
  return typeof code === "string" && /^[A-Za-z0-9_-]+$/.test(code);
}

const AGE_S_MAX = 7 * 24 * 3600;

/** Tolerance for clocks that differ, in seconds. Meta refuses an event whose time is later as "in the future". */
const FUTURE_S_MAX = 60;

const ACTION_SOURCES =
  "app business_messaging chat email other phone_call physical_store system_generated website".split(" ");

/**
 * Returns the reason why Meta refuses an event; undefined if it accepts it.
 * https://developers.facebook.com/documentation/ads-commerce/conversions-api/parameters
 */
function faultOf(event: unknown, nowS: number): string | undefined {
  if (!isRecord(event)) return "an event wants to be an object";
  const { event_name, event_id, event_time, action_source, user_data, custom_data = {} } = event;
  if (typeof event_name !== "string" || event_name === "") return "event_name is missing";
  if (event_id !== undefined && (typeof event_id !== "string" || event_id === "")) return "event_id wants a string";
  if (typeof event_time !== "number" || !Number.isInteger(event_time)) return "event_time wants unix seconds";
  if (nowS - event_time > AGE_S_MAX) return "event_time is more than 7 days old";
  if (event_time - nowS > FUTURE_S_MAX) return "event_time is in the future";
  if (typeof action_source !== "string" || !ACTION_SOURCES.includes(action_source)) return "action_source is missing";
  if (!isRecord(user_data)) return "user_data is missing";
  const purchase = event_name === "Purchase" ? purchaseFault(custom_data) : undefined;
  if (purchase !== undefined) return purchase;
  return action_source === "website"
    ? websiteFault(event["event_source_url"], user_data["client_user_agent"])
    : undefined;
}

/** Meta requires value and currency of a Purchase; a value below 0 is documented nowhere, so it is refused here. */
function purchaseFault(data: unknown): string | undefined {
  if (!isRecord(data)) return "custom_data wants to be an object";
  const { value, currency } = data;
  if (typeof value !== "number" || value < 0) return "a Purchase wants a value";
  return typeof currency === "string" && /^[A-Z]{3}$/.test(currency) ? undefined : "a Purchase wants a currency";
}

/**
 * Returns the reason why Meta refuses an event of a website, which requires more fields; undefined if it accepts it.
 */
function websiteFault(url: unknown, userAgent: unknown): string | undefined {
  if (typeof url !== "string" || !/^https?:\/\/./.test(url)) return "event_source_url is missing for a website event";
  const hasAgent = typeof userAgent === "string" && userAgent !== "";
  return hasAgent ? undefined : "client_user_agent is missing for a website event";
}

function invalid(reason: string): Response {
  return graphError(400, 100, "Invalid parameter", {
    error_subcode: 2_804_019,
    error_user_title: "Invalid parameter",
    error_user_msg: reason,
  });
}

export const metaRefusals = {
  // Meta answers too many requests with a 400 and a code that says so.
  "429": ({ retryAfter }) =>
    withRetryAfter(graphError(400, 80_004, "There have been too many calls to this ad-account."), retryAfter),
  "500": () =>
    graphError(500, 2, "An unexpected error has occurred. Please retry your request later.", { is_transient: true }),
  token_revoked: () =>
    graphError(400, 190, "Error validating access token: The session has been invalidated.", { error_subcode: 460 }),
} satisfies Refusals;
