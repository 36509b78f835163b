import { problems } from "../server/problem.ts";

/**
 * Requests in flight at the same time. Most take a millisecond; those that wait for a network hold some 10 KB for up to
 * six seconds. Beyond this, callers do better to come back than to wait.
 */
export const IN_FLIGHT_MAX = 4_096;

/** Event streams that are open at the same time; a browser tab has one. */
export const STREAMS_MAX = 1_000;

/** Event streams that one reader may have, so that one cannot keep all others out. */
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
    /** Throws the problem 503 over the limit. `pending` counts all requests in flight, including this one. */
    admit(pending: number): void {
      arrivals += 1;
      // Slow uploads do not count toward the limit; a few thousand would block all other requests.
      if (pending - coming - streams > inFlightMax) throw problems.overloaded();
    },
    /** Counts a request as still arriving while its body is read. */
    whileComing<T>(read: Promise<T>): Promise<T> {
      coming += 1;
      read.then(bodyEnded, bodyEnded);
      return read;
    },
    /**
     * Imports one list at a time, since each may fill a core and much memory. Throws the problem 503 while another one
     * is imported.
     */
    whileTaking: lists.take,
    get isTaking() {
      return lists.isTaken;
    },
    /**
     * Counts an event stream until the returned function is called. Throws the problem 503 if too many are open, and
     * 429 if this reader has too many.
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
    /** Open streams. They stay open for as long as their readers like. */
    get streams() {
      return streams;
    },
    /** Requests whose body is still arriving. No work was done for them yet. */
    get coming() {
      return coming;
    },
    get arrivals() {
      return arrivals;
    },
  };
}

/** Runs one piece of work at a time. Throws the problem 503 while one runs, with `words` as the message for people. */
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
