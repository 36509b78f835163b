/** How long work goes on at a time by default. */
const SLICE_MS = 2;

/** Work in slices of some milliseconds: in between, requests get their turn. */
export interface TimeSlices {
  /** Whether it is time for {@link next}. */
  isOver(): boolean;
  /** Resolves when the next slice begins. */
  next(): Promise<void>;
}

/** The first slice begins at once. */
export function createTimeSlices(sliceMs = SLICE_MS): TimeSlices {
  let endsAt = performance.now() + sliceMs;
  return {
    isOver: () => performance.now() >= endsAt,
    async next() {
      await nextTurn();
      endsAt = performance.now() + sliceMs;
    },
  };
}

/** Resolves in the next turn of the event loop: the requests and answers that have come by then are read. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Does work step by step, in time slices. */
export async function inTimeSlices<Result>(
  work: Generator<unknown, Result, void>,
  sliceMs = SLICE_MS,
): Promise<Result> {
  const slices = createTimeSlices(sliceMs);
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (slices.isOver()) await slices.next();
  }
}

/** The same members in the same order, `size` at a time; the last chunk may have fewer. */
export async function* inChunks<Member>(
  members: AsyncIterable<Member>,
  size: number,
): AsyncGenerator<readonly Member[], void, void> {
  let chunk: Member[] = [];
  for await (const member of members) {
    if (chunk.push(member) < size) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}
