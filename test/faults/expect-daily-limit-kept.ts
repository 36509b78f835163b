import { expect } from "bun:test";
import { exported, until, type ListeningService, type Installation } from "../harness/process.ts";
import { arrivals } from "./add-people-and-count-messages.ts";

/**
 * Number of recorded intents to send a message (DirectMessageAttempted) for each quota day. The key is the day that the
 * event names.
 */
export type PerDay = Readonly<Record<string, number>>;

export async function idle(service: ListeningService): Promise<void> {
  await until(
    async () => (await (await service.get("/social/health")).json()) as { running: boolean },
    ({ running }) => !running,
  );
}

/**
 * Expects at most `limit` intents a day, days and times that never go back, only one run at a time, and no recipient
 * contacted twice. Returns the number of intents of each day.
 */
export async function expectDaysKept(world: Installation, limit: number): Promise<PerDay> {
  const perDay: Record<string, number> = {};
  let [day, time] = ["", ""];
  let running: unknown;
  for (const event of await exported(world)) {
    const { type, data } = event;
    const recorded = (event as unknown as { time: string }).time;
    expect(recorded >= time).toBe(true);
    time = recorded;
    if (type === "RunStarted") {
      expect(running).toBeUndefined();
      running = data["run_id"];
    }
    if (type === "RunFinished" || type === "RunAbandoned") running = undefined;
    if (type !== "DirectMessageAttempted") continue;
    const next = String(data["day"]);
    expect(next >= day).toBe(true);
    day = next;
    perDay[day] = (perDay[day] ?? 0) + 1;
  }
  expect(Math.max(0, ...Object.values(perDay))).toBeLessThanOrEqual(limit);
  expect(arrivals(world).mostToOne).toBeLessThanOrEqual(1);
  return perDay;
}
