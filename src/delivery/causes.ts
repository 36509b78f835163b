import { requestFields, type LogFields } from "../platform/logger.ts";
import type { PendingDispatch } from "./outbox-window.ts";

/** Dispatches that a line names: a batch has a thousand of them, and positions near these lead to the rest. */
const NAMED_MAX = 10;

/** What a line of the operator's log says of these dispatches: where they were requested, and by which requests. */
export function causesOf(items: readonly Pick<PendingDispatch, "event">[]): LogFields {
  const named = items
    .slice(0, NAMED_MAX)
    .map(({ event: { position, meta } }) => ({ position, ...requestFields(meta) }));
  const all = (field: "position" | "request_id" | "trace_id"): string | undefined => {
    const values = new Set(named.flatMap((one) => one[field] ?? []));
    return values.size === 0 ? undefined : [...values].join(" ");
  };
  return {
    dispatches: items.length,
    positions: all("position"),
    request_id: all("request_id"),
    trace_id: all("trace_id"),
  };
}
