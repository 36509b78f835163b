import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { createArrivals, type Arrivals } from "./journal.ts";
import { ORIGINS } from "./network.ts";

export interface MetaEvent {
  readonly event_name: string;
  readonly event_id: string;
  readonly event_time: number;
  readonly event_source_url?: string;
  readonly action_source: string;
  readonly user_data: Record<string, unknown>;
  readonly test_event_code?: string;
}

export interface MetaState {
  readonly clock: SandboxClock;
  readonly pixelId: string;
  readonly accessToken: string;
  /** Everything that was sent. */
  readonly requests: Arrivals<unknown>;
  /** What Meta counts: one for each event_name and event_id within 48 hours. */
  readonly events: Arrivals<MetaEvent>;
  /** `event_name event_id` -> when it came first. */
  readonly seen: Map<string, number>;
}

const DEDUPLICATED_MS = 48 * 3_600_000;
const AGE_S_MAX = 7 * 24 * 3600;
/** Clocks differ a little; more than that is "in the future". */
const FUTURE_S_MAX = 60;
const BATCH_MAX = 1_000;
/** Versions before this have expired or expire within months. */
const VERSION_MIN = 22;

export function createMetaState(clock: SandboxClock): MetaState {
  return {
    clock,
    pixelId: "1234567890123456",
    accessToken: "EAASandboxMetaToken0123456789",
    requests: createArrivals(),
    events: createArrivals(),
    seen: new Map(),
  };
}

export function metaHandlers(state: MetaState) {
  const path = `${ORIGINS.meta}/:version/:pixel`;
  return [
    http.post(`${path}/events`, async ({ request, params }) => {
      const body = (await request.json().catch(() => undefined)) as Record<string, unknown> | undefined;
      state.requests.add(body);
      const url = new URL(request.url);
      const token = url.searchParams.get("access_token") ?? body?.["access_token"];
      const refused = refuse(state, String(params["version"]), String(params["pixel"]), token);
      if (refused !== undefined) return refused;
      return accept(state, body);
    }),
    http.get(path, ({ request, params }) => {
      const header = /^Bearer (.+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
      const token = new URL(request.url).searchParams.get("access_token") ?? header;
      const refused = refuse(state, String(params["version"]), String(params["pixel"]), token);
      return refused ?? HttpResponse.json({ id: state.pixelId });
    }),
  ];
}

function refuse(state: MetaState, version: string, pixel: string, token: unknown) {
  const number = Number(/^v(\d+)\.\d+$/.exec(version)?.[1] ?? Number.NaN);
  if (!(number >= VERSION_MIN))
    return graphError(400, 2635, "(#2635) You are calling a deprecated version of the Ads API.");
  if (token !== state.accessToken)
    return graphError(400, 190, "Invalid OAuth access token - Cannot parse access token", { type: "OAuthException" });
  if (pixel !== state.pixelId) {
    return graphError(400, 100, `Unsupported post request. Object with ID '${pixel}' does not exist`, {
      error_subcode: 33,
    });
  }
  return undefined;
}

function accept(state: MetaState, body: Record<string, unknown> | undefined) {
  const data = body?.["data"];
  if (!Array.isArray(data) || data.length < 1 || data.length > BATCH_MAX) {
    return graphError(400, 100, "Invalid parameter", { error_user_msg: "data wants 1 to 1000 events" });
  }
  const now = state.clock.now();
  // One bad event refuses the whole batch, and none is processed.
  for (const event of data as unknown[]) {
    const fault = faultOf(event, now / 1000);
    if (fault !== undefined)
      return graphError(400, 100, "Invalid parameter", { error_subcode: 2804019, error_user_msg: fault });
  }
  const code = body?.["test_event_code"];
  for (const event of data as MetaEvent[])
    count(state, typeof code === "string" ? { ...event, test_event_code: code } : event, now);
  return HttpResponse.json({ events_received: data.length, messages: [], fbtrace_id: "ASandboxTrace" });
}

function count(state: MetaState, event: MetaEvent, now: number): void {
  const key = `${event.event_name} ${event.event_id}`;
  const first = state.seen.get(key);
  if (first !== undefined && now - first < DEDUPLICATED_MS) return;
  state.seen.set(key, now);
  state.events.add(event);
}

function faultOf(event: unknown, nowS: number): string | undefined {
  if (typeof event !== "object" || event === null) return "an event wants to be an object";
  const { event_name, event_time, action_source, event_source_url, user_data } = event as Partial<MetaEvent>;
  if (typeof event_name !== "string" || event_name === "") return "event_name is missing";
  if (typeof event_time !== "number" || !Number.isInteger(event_time)) return "event_time wants unix seconds";
  if (nowS - event_time > AGE_S_MAX) return "event_time is more than 7 days old";
  if (event_time - nowS > FUTURE_S_MAX) return "event_time is in the future";
  if (action_source !== "website") return "action_source is missing";
  if (typeof event_source_url !== "string") return "event_source_url is missing for a website event";
  if (typeof user_data !== "object" || user_data === null) return "user_data is missing";
  const agent = user_data["client_user_agent"];
  return typeof agent === "string" && agent !== "" ? undefined : "client_user_agent is missing for a website event";
}

/** An error of the Graph API. */
function graphError(status: number, code: number, message: string, more: Record<string, unknown> = {}) {
  const error = { message, type: "OAuthException", code, is_transient: false, fbtrace_id: "ASandboxTrace", ...more };
  return HttpResponse.json({ error }, { status });
}

/** What Meta answers when a fault is switched on. */
export function metaRefusal(kind: string, retryAfter: number | undefined): Response | undefined {
  switch (kind) {
    case "429": {
      const throttled = graphError(400, 80004, "There have been too many calls to this ad-account.");
      if (retryAfter !== undefined) throttled.headers.set("retry-after", String(retryAfter));
      return throttled;
    }
    case "500":
      return graphError(500, 2, "An unexpected error has occurred. Please retry your request later.", {
        is_transient: true,
      });
    case "502_html":
      return HttpResponse.html("<html><body><h1>502 Bad Gateway</h1></body></html>", { status: 502 });
    case "token_revoked":
      return graphError(400, 190, "Error validating access token: The session has been invalidated.", {
        error_subcode: 460,
      });
    default:
      return undefined;
  }
}
