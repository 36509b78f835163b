/** The members of each batch, one after the other; none any more once `signal` aborts. */
export async function* oneByOne<Member>(
  batches: AsyncIterable<readonly Member[]>,
  signal?: AbortSignal,
): AsyncGenerator<Member, void, void> {
  for await (const batch of batches) {
    for (const member of batch) {
      if (signal?.aborted) return;
      yield member;
    }
  }
}
