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
