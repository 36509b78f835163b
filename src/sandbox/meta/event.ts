export interface MetaEvent {
  readonly event_name: string;
  readonly event_id?: string;
  /** Unix seconds. */
  readonly event_time: number;
  readonly event_source_url?: string;
  readonly action_source: string;
  readonly user_data: Record<string, unknown>;
  readonly test_event_code?: string;
}

const AGE_S_MAX = 7 * 24 * 3600;

/** Clocks differ a little; more than that is "in the future". */
const FUTURE_S_MAX = 60;

const ACTION_SOURCES = new Set([
  "app",
  "business_messaging",
  "chat",
  "email",
  "other",
  "phone_call",
  "physical_store",
  "system_generated",
  "website",
]);

/**
 * Why Meta refuses an event, in words; undefined: it does not.
 * https://developers.facebook.com/documentation/ads-commerce/conversions-api/parameters
 */
export function faultOf(event: unknown, nowS: number): string | undefined {
  if (typeof event !== "object" || event === null) return "an event wants to be an object";
  const { event_name, event_id, event_time, action_source, user_data } = event as Partial<Record<string, unknown>>;
  if (typeof event_name !== "string" || event_name === "") return "event_name is missing";
  if (event_id !== undefined && (typeof event_id !== "string" || event_id === "")) return "event_id wants a string";
  if (typeof event_time !== "number" || !Number.isInteger(event_time)) return "event_time wants unix seconds";
  if (nowS - event_time > AGE_S_MAX) return "event_time is more than 7 days old";
  if (event_time - nowS > FUTURE_S_MAX) return "event_time is in the future";
  if (typeof action_source !== "string" || !ACTION_SOURCES.has(action_source)) return "action_source is missing";
  if (typeof user_data !== "object" || user_data === null) return "user_data is missing";
  return action_source === "website" ? websiteFault(event, user_data) : undefined;
}

/** A website's event needs more than the others. */
function websiteFault(event: object, userData: object): string | undefined {
  const { event_source_url } = event as { event_source_url?: unknown };
  if (typeof event_source_url !== "string" || !/^https?:\/\/./.test(event_source_url)) {
    return "event_source_url is missing for a website event";
  }
  const { client_user_agent } = userData as { client_user_agent?: unknown };
  const hasAgent = typeof client_user_agent === "string" && client_user_agent !== "";
  return hasAgent ? undefined : "client_user_agent is missing for a website event";
}
