import { problems } from "../server/problem.ts";

/**
 * Most requests in flight at the same time; beyond this, callers do better to retry later than to wait. Most requests
 * take a millisecond; those that wait for a network hold some 10 KB for up to six seconds.
 */
export const IN_FLIGHT_MAX = 4_096;

/** Most event streams that are open at the same time; each open browser tab has one. */
export const STREAMS_MAX = 1_000;

/** Most event streams that one reader may have open, so that it cannot keep all others out. */
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
    /** Counts a request as still arriving while its body is read, so that slow uploads do not count as load. */
    whileComing<T>(read: Promise<T>): Promise<T> {
      coming += 1;
      read.then(bodyEnded, bodyEnded);
      return read;
    },
    /**
     * Runs the import of one recipient list at a time, since each may fill a core and much memory. Throws the problem
     * 503 while another import runs.
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
    /** Number of open event streams. Readers keep them open for as long as they like. */
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

/**
 * Creates a slot in which one piece of work runs at a time. While it is taken, further work gets the problem 503, with
 * `words` as the message for people.
 */
export function createSlot(words: string) {
  let isTaken = false;
  return {
    async take<T>(work: () => Promise<T>): Promise<T> {
      if (isTaken) throw problems.overloaded().with({}, { words });
      isTaken = true;
      try {
        return await work();
      } finally {
        isTaken = false;
      }
    },
    get isTaken() {
      return isTaken;
    },
  };
}
