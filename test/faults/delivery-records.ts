import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { exported, type Installation } from "../harness/process.ts";
import type { Kill } from "./killed-services.ts";
import type { NetworkRow } from "./delivery-network-table.ts";

/** Event as `audit export` writes it. */
export type Logged = Awaited<ReturnType<typeof exported>>[number] & { readonly id: string };

const ENDINGS = {
  DispatchSucceeded: "delivered",
  DispatchInDoubt: "in doubt",
  DispatchAbandoned: "dead",
  DispatchSkipped: "skipped",
} as const;

export type Ending = (typeof ENDINGS)[keyof typeof ENDINGS];

/** One dispatch, as the log and the network record it. */
export interface DispatchRecord {
  readonly position: number;
  /** Name by which the test finds the dispatch in the sandbox's record of what arrived. */
  readonly name: string;
  readonly isClick: boolean;
  /** Outcomes of the dispatch in the order of the log, including the ones before the last. */
  readonly outcomes: readonly Logged[];
  readonly endings: readonly Ending[];
  /** Position of the event that ended the dispatch; Infinity if it has not ended. */
  readonly endedAt: number;
  /** Number of times that the dispatch arrived at the network. */
  readonly arrived: number;
  /** Number of kills that came after the dispatch had arrived and before its end was recorded. */
  readonly cutOff: number;
}

export async function logOf(world: Installation): Promise<readonly Logged[]> {
  return await exported(world);
}

/** All dispatches to a channel that the log requests. `arrived` holds how often each name arrived. */
export function recordsOf(
  log: readonly Logged[],
  row: NetworkRow,
  { arrived, kills }: { readonly arrived: ReadonlyMap<string, number>; readonly kills: readonly Kill[] },
): DispatchRecord[] {
  const outcomes = Map.groupBy(
    log.filter(({ type, data }) => isOutcome(type) && data["channel"] === row.channel).flatMap(eachOf),
    ({ data }) => data["source"],
  );
  return log
    .filter((event) => requestsDispatch(event, row.channel))
    .map((event) => {
      const { position, type } = event;
      const own = outcomes.get(position) ?? [];
      const endedAt = own.find((outcome) => isEnding(outcome.type))?.position ?? Infinity;
      const name = row.bearsIds === true ? event.id : nameOf(event);
      const cutOff = kills.filter((kill) => kill.arrived.has(name) && endedAt > kill.position).length;
      const endings = own.flatMap((outcome) => (isEnding(outcome.type) ? [ENDINGS[outcome.type]] : []));
      return {
        position,
        name,
        isClick: type === "LinkClicked",
        outcomes: own,
        endings,
        endedAt,
        arrived: arrived.get(name) ?? 0,
        cutOff,
      };
    });
}

/** Splits an event that records the outcome of several dispatches into one event for each dispatch. */
function eachOf({ data, ...event }: Logged): Logged[] {
  const requests = data["requests"] as readonly { readonly sources: readonly (number | [number, number])[] }[];
  return requests.flatMap(({ sources, ...request }) =>
    sources.flatMap((range) => {
      const [first, last] = typeof range === "number" ? [range, range] : range;
      const positions = Array.from({ length: last - first + 1 }, (_, at) => first + at);
      return positions.map((source) => ({ ...event, data: { ...request, source } }));
    }),
  );
}

function isEnding(type: string): type is keyof typeof ENDINGS {
  return Object.hasOwn(ENDINGS, type);
}

function isOutcome(type: string): boolean {
  return isEnding(type) || type === "DispatchFailed";
}

/**
 * True if the event requests a dispatch on the channel. It does not use the service's own rule, so that the tests find
 * a defect of that rule.
 */
function requestsDispatch({ type, data }: Logged, channel: ChannelName): boolean {
  if (type === "LinkClicked" || type === "ChannelTestRequested")
    return (data["channels"] as string[]).includes(channel);
  return type === (channel === "chat" ? "NotificationRequested" : "MessageRequested") && channel !== "ads";
}

/** Returns the name in a click or a text. */
function nameOf({ data }: Logged): string {
  const name = data["short_code"] ?? data["message"] ?? data["text"];
  return typeof name === "string" ? name : "";
}
