import {
  makeEvent,
  type DataOf,
  type Event,
  type EventType,
  type Recorded,
} from "../../../events/event-types-and-codec.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { fold, type Projection } from "../../../projections/projection.ts";

const START = Date.parse("2026-11-20T10:00:00.000Z");

/** A log in memory that gives each event a position, a version and a time one second after the event before. */
export interface TestLog {
  readonly events: Recorded[];
  /** Appends an event and returns its position. */
  add<T extends EventType>(type: T, data: DataOf<T>): number;
}

export function testLog(start = START): TestLog {
  const events: Recorded[] = [];
  const versions = new Map<string, number>();
  return {
    events,
    add(type, data) {
      const position = events.length + 1;
      const stream = streamOf(type, data);
      const version = (versions.get(stream) ?? 0) + 1;
      versions.set(stream, version);
      const id = `019a9f00-0000-7000-8000-${String(position).padStart(12, "0")}`;
      const event: Event = makeEvent(type, id, data, { caller: "test" });
      const time = new Date(start + position * 1000).toISOString();
      // The event is frozen, so that a fold which changes it fails at once and does not affect other folds.
      events.push(deepFreeze({ ...event, position, stream, version, time, hash: "" }) as Recorded);
      return position;
    },
  };
}

/** Returns a projection's state after these events. */
export function given<State>(projection: Projection<State>, newEvents: readonly NewEvent[]): State {
  const log = testLog();
  for (const { type, data } of newEvents) log.add(type, data);
  return fold(projection, projection.initial(), log.events);
}

/**
 * Returns a name for the event's stream. Events of outreach and of deliveries get their real streams; tests do not
 * depend on the names of the others.
 */
function streamOf(type: EventType, data: object): string {
  if (type.startsWith("Dispatch") && "channel" in data) return `delivery-${String(data.channel)}`;
  if (/^(Recipient|Run|DryRun|DirectMessage|InboxRead|SourceRead)/.test(type)) return "outreach";
  return "others";
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
