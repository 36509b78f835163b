import { problems } from "../server/problem.ts";

/**
 * Maximum number of requests in flight. Further requests are refused with 503, because a retry is better than a long
 * wait. Most requests take a millisecond; those that wait for a network hold some 10 KB for up to six seconds.
 */
export const IN_FLIGHT_MAX = 4_096;

/** Maximum number of open event streams. Each open browser tab has one. */
export const STREAMS_MAX = 1_000;

/** Maximum number of open event streams of one reader, so that one reader cannot take them all. */
export const STREAMS_PER_READER_MAX = 100;

const ANOTHER_LIST =
  "Another list is being imported. Nothing of this one was imported: send it again in a few seconds.";

export type LoadShedding = ReturnType<typeof createLoadShedding>;

export function createLoadShedding(inFlightMax: number = IN_FLIGHT_MAX) {
  let coming = 0;
  let arrivals = 0;
  let streams = 0;
  const bodyEnded = (): void => {
    coming -= 1;
  };
  const streamsOf = new Map<string, number>();
  const countStreams = (reader: string, change: 1 | -1): void => {
    streams += change;
    const left = (streamsOf.get(reader) ?? 0) + change;
    if (left === 0) streamsOf.delete(reader);
    else streamsOf.set(reader, left);
  };
  const lists = createSlot(ANOTHER_LIST);
  return {
    /** Throws the problem 503 if too many requests are in flight. `pending` counts all of them, including this one. */
    admit(pending: number): void {
      arrivals += 1;
      // Slow uploads do not count toward the limit; a few thousand would block all other requests.
      if (pending - coming - streams > inFlightMax) throw problems.overloaded();
    },
    /**
     * Counts a request as arriving until its body is read. Until then it does not count toward the limit of requests in
     * flight.
     */
    whileComing<T>(read: Promise<T>): Promise<T> {
      coming += 1;
      read.then(bodyEnded, bodyEnded);
      return read;
    },
    /**
     * Runs one import of a list at a time, because an import may use a whole core and much memory. Throws the problem
     * 503 if another import still runs after `wait.ms`.
     */
    whileTaking: lists.take,
    get isTaking() {
      return lists.isTaken;
    },
    /**
     * Counts an event stream as open until the returned function is called. Throws the problem 503 if too many are
     * open, and 429 if this reader has too many.
     */
    openStream(reader: string): () => void {
      if (streams >= STREAMS_MAX) throw problems.overloaded();
      if ((streamsOf.get(reader) ?? 0) >= STREAMS_PER_READER_MAX) throw problems.tooManyStreams();
      countStreams(reader, 1);
      let isOpen = true;
      return () => {
        if (isOpen) countStreams(reader, -1);
        isOpen = false;
      };
    },
    /** Number of open event streams, which readers may keep open for any time. */
    get streams() {
      return streams;
    },
    /** Number of requests whose body is still arriving. The service has done no work for them yet. */
    get coming() {
      return coming;
    },
    get arrivals() {
      return arrivals;
    },
  };
}

/** Maximum number of pieces of work that wait for one slot. Each may hold an uploaded list in memory. */
const SLOT_WAITING_MAX = 8;

interface SlotWait {
  /** Maximum time in ms that work waits for its turn to run in the slot, which one piece of work holds at a time. */
  readonly ms: number;
  /** Signal whose abort ends the wait for the slot, which only one piece of work holds at a time. */
  readonly signal: AbortSignal;
}

/**
 * Creates a slot that one piece of work holds at a time. Other work waits for it, up to the time that the caller
 * allows, and is then refused with the problem 503, whose page shows `words`.
 */
export function createSlot(words: string) {
  let isTaken = false;
  const waiting: (() => void)[] = [];

  /** Resolves with true once the slot is this caller's; with false if the wait ends before. */
  function waitForSlot({ ms, signal }: SlotWait): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const ended = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
    const enter = (): void => resolve(true);
    ended.addEventListener("abort", () => {
      const at = waiting.indexOf(enter);
      if (at >= 0) waiting.splice(at, 1);
      resolve(false);
    });
    waiting.push(enter);
    return promise;
  }

  return {
    async take<T>(work: () => Promise<T>, wait?: SlotWait): Promise<T> {
      if (isTaken) {
        const mayWait = wait !== undefined && waiting.length < SLOT_WAITING_MAX;
        if (!mayWait || !(await waitForSlot(wait))) throw problems.overloaded().with({}, { words });
      }
      isTaken = true;
      try {
        return await work();
      } finally {
        const enterNext = waiting.shift();
        if (enterNext === undefined) isTaken = false;
        else enterNext();
      }
    },
    get isTaken() {
      return isTaken;
    },
  };
}
