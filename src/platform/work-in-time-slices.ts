/** Length of a slice of work: short enough for requests to be answered between two slices. */
const SLICE_MS = 2;

export type TimeSlices = ReturnType<typeof createTimeSlices>;

/**
 * Splits work into slices of some milliseconds, between which requests are answered. The first slice begins at once.
 */
export function createTimeSlices(sliceMs = SLICE_MS) {
  let endsAt = performance.now() + sliceMs;
  return {
    /** True if the present slice of work has passed. The work must then await `next`. */
    isOver: (): boolean => performance.now() >= endsAt,
    /** Resolves when the next slice of work begins. */
    async next(): Promise<void> {
      await nextTurn();
      endsAt = performance.now() + sliceMs;
    },
  };
}

/** Resolves in the next turn of the event loop, after the requests and answers that have arrived by then are read. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

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

/** Yields the members of a list in order, `size` at a time. The last chunk may have fewer. */
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
