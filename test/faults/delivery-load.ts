import { until } from "../harness/process.ts";
import type { Lives } from "./killed-services.ts";
import type { NetworkRow } from "./delivery-network-table.ts";
import { click } from "./click-load.ts";

/** A load of clicks and direct sends. Each has its own name, by which the test finds it at the network. */
export interface NamedLoad {
  /** Ids of the events (clicks, notifications and messages) that the service has acknowledged. */
  readonly acknowledged: ReadonlySet<string>;
  /** Posts clicks; resolves when all are answered. */
  clicks(count: number, change?: (number: number) => Record<string, string>): Promise<void>;
  /** Sends `count` messages directly on the network's channel; on ads, channel tests. */
  directs(count: number): Promise<void>;
  /** Posts one click to make the network ask for a long pause. Resolves when the pause has begun. */
  pause(seconds: number): Promise<void>;
}

export function createLoad(lives: Lives, { channel, network }: NetworkRow): NamedLoad {
  const acknowledged = new Set<string>();
  let named = 0;

  const post = async (path: string, body?: unknown): Promise<void> => {
    const answer = await lives.post(path, body);
    const { id } = (await answer.json()) as { id?: string };
    if (id !== undefined) acknowledged.add(id);
  };
  const times = async (count: number, one: () => Promise<void>): Promise<void> => {
    await Promise.all(Array.from({ length: count }, one));
  };

  const clicks: NamedLoad["clicks"] = (count, change = () => ({})) =>
    times(count, () => {
      const number = named++;
      return post("/api/tracking/event", { ...click(number), short_code: `click-${number}`, ...change(number) });
    });

  return {
    acknowledged,
    clicks,
    directs: (count) =>
      times(count, () => {
        const text = `direct-${named++}`;
        if (channel === "chat") return post("/api/notify", { message: text });
        if (channel === "messaging") return post("/api/messaging", { text });
        return post("/api/tracking/test");
      }),
    async pause(seconds) {
      const { faults, tally } = lives.world.sandbox;
      // Counts answers of any status, because Meta reports a rate limit with a status other than 429.
      const answered = (): number => Object.values(tally[network].answers).reduce((sum, times) => sum + times, 0);
      const before = answered();
      faults.add({ network, kind: "429", count: 1, retryAfter: seconds });
      await clicks(1);
      await until(
        async () => {
          // The service's clock is faster than real time, but its event loop sleeps in real time. A request wakes it.
          await lives.health();
          return answered();
        },
        (times) => times > before,
      );
    },
  };
}
