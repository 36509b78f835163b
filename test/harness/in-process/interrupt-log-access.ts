import { StoreFull } from "eventstore-lite/testing";
import type { EventLog } from "../../../src/log/event-log.ts";

/** Controls if a process can reach the log, to simulate that the process is paused or dead. */
export interface Reach {
  readonly wrap: (eventLog: EventLog) => EventLog;
  /** Makes the process's calls to the log wait from now on. */
  standStill(): void;
  goOn(): void;
  /** Makes the process's calls to the log fail without effect from now on. */
  die(): void;
}

export function createReach(): Reach {
  const state = { isStanding: false, isDead: false };
  const waiting = new Set<() => void>();

  const pass = async <T>(call: () => Promise<T>): Promise<T> => {
    while (state.isStanding && !state.isDead) await new Promise<void>((resolve) => waiting.add(resolve));
    if (state.isDead) throw new StoreFull();
    return call();
  };
  const wake = (): void => {
    for (const resolve of waiting) resolve();
    waiting.clear();
  };

  return {
    wrap: (eventLog) => {
      const { leases } = eventLog.store;
      return {
        append: (...args) => pass(() => eventLog.append(...args)),
        store: {
          ...eventLog.store,
          leases: {
            ...leases,
            acquire: (...args) => pass(() => leases.acquire(...args)),
            release: (...args) => pass(() => leases.release(...args)),
          },
        },
      };
    },
    standStill() {
      state.isStanding = true;
    },
    goOn() {
      state.isStanding = false;
      wake();
    },
    die() {
      state.isDead = true;
      wake();
    },
  };
}
