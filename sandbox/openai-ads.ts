import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { createRecorded } from "./record-received.ts";
import { bearerOf, isRecord, jsonOf, membersOf, withRetryAfter } from "./read-request.ts";

export interface OpenAiEvent {
  readonly id: string;
  readonly type: string;
  readonly timestamp_ms: number;
  readonly source_url: string;
  readonly oppref?: string;
  readonly user?: Record<string, unknown>;
}

const BATCH_MAX = 1_000;
const AGE_MS_MAX = 7 * 24 * 3_600_000;
const AHEAD_MS_MAX = 10 * 60_000;

/** Shape of the data of each type of event: https://developers.openai.com/ads/supported-events */
const SHAPES: Readonly<Record<string, string>> = {
  page_viewed: "contents",
  contents_viewed: "contents",
  items_added: "contents",
  checkout_started: "contents",
  order_created: "contents",
  lead_created: "customer_action",
  registration_completed: "customer_action",
  appointment_scheduled: "customer_action",
  subscription_created: "plan_enrollment",
  trial_started: "plan_enrollment",
  custom: "custom",
};

/** Creates the state of OpenAI's Conversions API with one pixel. */
export function createOpenAiState(clock: SandboxClock) {
  return {
    clock,
    pixelId: "pixSandbox0123456789",
    accessToken: "sk-ads-sandbox-0123456789",
    /** Events that OpenAI counts: one for each `id` and `type`. */
    events: createRecorded<OpenAiEvent>(),
    seen: new Set<string>(),
    /** Ids of the events that OpenAI only validated, because the request asked for no more. */
    validated: new Set<string>(),
  };
}

export type OpenAiState = ReturnType<typeof createOpenAiState>;

export function openAiHandlers(state: OpenAiState) {
  return [
    http.post(`${ORIGINS.openai}/v1/events`, async ({ request }) => {
      if (bearerOf(request) !== state.accessToken) return openAiError(401, "Invalid API key");
      if (new URL(request.url).searchParams.get("pid") !== state.pixelId) return openAiError(404, "Unknown pixel");
      return accept(state, membersOf(await jsonOf(request)));
    }),
  ];
}

function accept(state: OpenAiState, { events, validate_only = false }: Readonly<Record<string, unknown>>): Response {
  if (typeof validate_only !== "boolean") return openAiError(400, "validate_only wants a boolean");
  if (!Array.isArray(events) || events.length < 1 || events.length > BATCH_MAX)
    return openAiError(400, `events wants 1 to ${BATCH_MAX} events`);
  // One bad event makes the whole batch fail.
  const fault = (events as unknown[])
    .map((event) => faultOf(event, state.clock.now()))
    .find((one) => one !== undefined);
  if (fault !== undefined) return openAiError(400, fault);
  for (const event of events as OpenAiEvent[]) {
    if (validate_only) state.validated.add(event.id);
    else if (!state.seen.has(`${event.type} ${event.id}`)) {
      state.seen.add(`${event.type} ${event.id}`);
      state.events.add(event);
    }
  }
  return HttpResponse.json({});
}

/** Returns the reason why OpenAI refuses an event; undefined if it accepts it. */
function faultOf(event: unknown, now: number): string | undefined {
  if (!isRecord(event)) return "an event wants to be an object";
  const { id, type, timestamp_ms: at, source_url, action_source = "web", data, custom_event_name } = event;
  if (typeof id !== "string" || id === "") return "id is missing";
  if (typeof type !== "string" || SHAPES[type] === undefined) return "type is unknown";
  if (typeof at !== "number" || !Number.isInteger(at)) return "timestamp_ms wants milliseconds";
  if (now - at > AGE_MS_MAX || at - now > AHEAD_MS_MAX) return "timestamp_ms is out of range";
  if (action_source === "web" && (typeof source_url !== "string" || !/^https?:\/\/./.test(source_url)))
    return "source_url is missing";
  if (type === "custom" && typeof custom_event_name !== "string") return "custom_event_name is missing";
  if (membersOf(data)["type"] !== SHAPES[type]) return "data does not match the type";
  const { amount, currency } = membersOf(data);
  if (amount !== undefined && (!Number.isInteger(amount) || typeof currency !== "string"))
    return "amount wants whole minor units and a currency";
  return undefined;
}

/** Answers with an error. OpenAI documents no form of its errors, so callers can read the status only. */
export function openAiError(status: number, message: string): Response {
  return HttpResponse.json({ error: { message } }, { status });
}

export const openAiRefusals = {
  "429": ({ retryAfter }) => withRetryAfter(openAiError(429, "Too many requests"), retryAfter),
  "500": () => openAiError(500, "Internal error"),
  token_revoked: () => openAiError(401, "Invalid API key"),
} satisfies Refusals;
