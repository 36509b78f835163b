import { PRODUCT, type StoryEvent, type StoryLog } from "./story-log-interface.ts";

/** Channels that every click of the story goes to. */
export const STORY_CHANNELS = ["ads", "chat", "messaging"] as const;
export type StoryChannel = (typeof STORY_CHANNELS)[number];

/** Click that the channels are to receive. */
export interface PendingClick {
  readonly position: number;
  readonly id: string;
  readonly bot: boolean;
  readonly hasAgent: boolean;
}

/** Clicks of a channel that have no outcome yet, by their positions, and the position after the newest click. */
interface StoryLane {
  readonly waiting: Map<number, PendingClick>;
  next: number;
}

export type StoryLanes = ReturnType<typeof createLanes>;

/** Creates the lanes (queues) of the channels, which know which clicks wait for an outcome. */
export function createLanes(log: StoryLog) {
  const create = (): StoryLane => ({ waiting: new Map(), next: 1 });
  const lanes = { ads: create(), chat: create(), messaging: create() };
  const append = (channel: StoryChannel, events: readonly StoryEvent[]) =>
    log.append(`delivery-${channel}`, events, PRODUCT);
  return {
    append,
    /** Adds clicks that every channel is to receive. */
    add(clicks: readonly PendingClick[]): void {
      for (const channel of STORY_CHANNELS) {
        for (const click of clicks) lanes[channel].waiting.set(click.position, click);
        lanes[channel].next = (clicks.at(-1)?.position ?? 0) + 1;
      }
    },
    waiting: (channel: StoryChannel): readonly PendingClick[] => [...lanes[channel].waiting.values()],
    /** Appends one kind of outcome of some requests with clicks, which then wait no longer. */
    async end(channel: StoryChannel, type: string, requests: readonly (readonly PendingClick[])[], more: object) {
      const { waiting, next } = lanes[channel];
      for (const { position } of requests.flat()) waiting.delete(position);
      const low_watermark = Math.min(...waiting.keys(), next);
      const made = requests.map((clicks) => ({ sources: toSources(clicks), attempt: 1, ...more }));
      await append(channel, [{ type, data: { channel, lane: "clicks", low_watermark, requests: made } }]);
    },
  };
}

/** Converts clicks in the order of their positions to the product's ranges of positions. */
function toSources(clicks: readonly PendingClick[]): (number | [number, number])[] {
  const ranges: [number, number][] = [];
  for (const { position } of clicks) {
    const last = ranges.at(-1);
    if (last?.[1] === position - 1) last[1] = position;
    else ranges.push([position, position]);
  }
  return ranges.map(([first, last]) => (first === last ? first : [first, last]));
}
