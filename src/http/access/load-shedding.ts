import { problems } from "../server/problem.ts";

/**
 * Requests answered at the same time. Most take a millisecond; those that wait for a network hold some 10 KB for up to
 * six seconds. Past it it is better for a caller to come back than to wait.
 */
export const IN_FLIGHT_MAX = 4_096;

/** Streams of events that are open at the same time: a browser tab has one. */
export const STREAMS_MAX = 1_000;

/** How many of these one reader may have, so that one cannot keep all others out. */
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
    /** Throws the problem 503 when no more is taken; `pending`: all requests under way, this one too. */
    admit(pending: number): void {
      arrivals += 1;
      // A slow upload takes no place: a few thousand of them would keep all other requests out.
      if (pending - coming - streams > inFlightMax) throw problems.overloaded();
    },
    /** Counts a request as one that is still coming, while its body is read. */
    whileComing<T>(read: Promise<T>): Promise<T> {
      coming += 1;
      read.then(bodyEnded, bodyEnded);
      return read;
    },
    /** Takes one list of recipients at a time, since each may fill a core and much memory. Throws the problem 503 while one is. */
    whileTaking: lists.take,
    get isTaking() {
      return lists.isTaken;
    },
    /**
     * Counts a stream of events until the answer is called. Throws the problem 503 when no more is taken, and 429 when no
     * more is taken of this reader.
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
    /** Streams that are open: they are under way for as long as their readers like. */
    get streams() {
      return streams;
    },
    /** Requests of which not all has come: nothing was done for them. */
    get coming() {
      return coming;
    },
    get arrivals() {
      return arrivals;
    },
  };
}

/** Lets one piece of work go on at a time. Throws the problem 503, in these words for people, while one does. */
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
