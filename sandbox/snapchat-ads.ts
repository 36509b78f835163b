import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { createRecorded } from "./record-received.ts";
import { isRecord, jsonOf, membersOf, withRetryAfter } from "./read-request.ts";

export interface SnapEvent {
  readonly event_name: string;
  readonly event_id?: string;
  /** Time of the event, in seconds since the epoch. */
  readonly event_time: number;
  readonly event_source_url: string;
  readonly user_data: Record<string, unknown>;
}

const BATCH_MAX = 2_000;
const AGE_S_MAX = 28 * 24 * 3_600;
const FUTURE_S_MAX = 60;

/** Creates the state of version 3 of Snap's Conversions API with one pixel. */
export function createSnapState(clock: SandboxClock) {
  return {
    clock,
    pixelId: "5a1d0b0c-0000-4000-8000-sandboxsnap0",
    accessToken: "eySandboxSnapToken0123456789",
    /** Events that Snap counts: one for each name and `event_id`. */
    events: createRecorded<SnapEvent>(),
    seen: new Set<string>(),
    /** Ids of the events that came to the test endpoint. */
    validated: new Set<string>(),
  };
}

export type SnapState = ReturnType<typeof createSnapState>;

/** Handles events, and test events: https://developers.snap.com/api/marketing-api/Conversions-API/VerifySetUp */
export function snapHandlers(state: SnapState) {
  const events = `${ORIGINS.snap}/v3/:pixel/events`;
  const handle =
    (isTest: boolean) =>
    async ({ request, params }: { readonly request: Request; readonly params: Readonly<Record<string, unknown>> }) => {
      const token = new URL(request.url).searchParams.get("access_token");
      if (token !== state.accessToken || params["pixel"] !== state.pixelId) return snapError(401, "Unauthorized");
      return accept(state, membersOf(await jsonOf(request)), isTest);
    };
  return [http.post(events, handle(false)), http.post(`${events}/validate`, handle(true))];
}

function accept(state: SnapState, { data }: Readonly<Record<string, unknown>>, isTest: boolean): Response {
  if (!Array.isArray(data) || data.length < 1 || data.length > BATCH_MAX)
    return snapError(400, `data wants 1 to ${BATCH_MAX} events`);
  const nowS = state.clock.now() / 1000;
  const fault = (data as unknown[]).map((event) => faultOf(event, nowS)).find((one) => one !== undefined);
  if (fault !== undefined) return snapError(400, fault);
  for (const event of data as SnapEvent[]) {
    const key = `${event.event_name} ${event.event_id}`;
    if (isTest) state.validated.add(key);
    else if (event.event_id === undefined || !state.seen.has(key)) {
      state.seen.add(key);
      state.events.add(event);
    }
  }
  return HttpResponse.json({ status: "VALID" });
}

/** Returns the reason why Snap refuses an event of a website; undefined if it accepts it. */
function faultOf(event: unknown, nowS: number): string | undefined {
  if (!isRecord(event)) return "an event wants to be an object";
  const { event_name, event_time: at, action_source, event_source_url, user_data } = event;
  if (typeof event_name !== "string" || !/^[A-Z0-9_]+$/.test(event_name)) return "event_name is invalid";
  if (typeof at !== "number" || !Number.isInteger(at)) return "event_time wants unix seconds";
  if (nowS - at > AGE_S_MAX || at - nowS > FUTURE_S_MAX) return "event_time is out of range";
  if (action_source !== "WEB") return "action_source wants WEB";
  if (typeof event_source_url !== "string" || event_source_url === "") return "event_source_url is missing";
  const { em, ph, client_ip_address: ip, client_user_agent: agent } = membersOf(user_data);
  const isMatched = em !== undefined || ph !== undefined || (typeof ip === "string" && typeof agent === "string");
  return isMatched ? undefined : "user_data needs em, ph, or address and user agent";
}

/** Answers with an error. Callers read the status only: the form is not documented. */
export function snapError(status: number, reason: string): Response {
  return HttpResponse.json({ status: "INVALID", reason }, { status });
}

export const snapRefusals = {
  "429": ({ retryAfter }) => withRetryAfter(snapError(429, "Too many requests"), retryAfter),
  "500": () => snapError(500, "Internal error"),
  token_revoked: () => snapError(401, "Unauthorized"),
} satisfies Refusals;
