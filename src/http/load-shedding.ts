import { problems } from "./problem.ts";

/**
 * Requests answered at the same time. Most take a millisecond; those that wait for a network hold some 10 KB for up to
 * six seconds. Past it it is better for a caller to come back than to wait.
 */
export const IN_FLIGHT_MAX = 4_096;

/** How busy the service is. */
export interface LoadShedding {
  /** Throws the problem 503 when no more is taken; `pending`: all requests under way, this one too. */
  admit(pending: number): void;
  /** Counts a request as one that is still coming, while its body is read. */
  whileComing<T>(read: Promise<T>): Promise<T>;
  /** Requests of which not all has come: nothing was done for them. */
  readonly coming: number;
  /** Requests that came so far. */
  readonly came: number;
}

export function createLoadShedding(inFlightMax: number = IN_FLIGHT_MAX): LoadShedding {
  let coming = 0;
  let came = 0;
  return {
    admit(pending) {
      came += 1;
      // Whoever sends a body slowly takes no place: a few thousand of them would keep all others out.
      if (pending - coming > inFlightMax) throw problems.overloaded();
    },
    async whileComing(read) {
      coming += 1;
      try {
        return await read;
      } finally {
        coming -= 1;
      }
    },
    get coming() {
      return coming;
    },
    get came() {
      return came;
    },
  };
}
