import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { constants, createDeflateRaw, createInflateRaw } from "node:zlib";
import { createStateDecoder, encodePieces } from "../../projections/snapshot.ts";

/** How long a state is encoded or decoded at a time: a list of 50,000 people takes a tenth of a second. */
const SLICE_MS = 2;

export interface PackOptions {
  /** Called once the state may change again. */
  readonly onEncoded?: () => void;
  /** How long it is encoded until others have their turn. */
  readonly sliceMs?: number | undefined;
}

/** What a snapshot stores of a state: its text, compressed beside this thread to a tenth. */
export async function packState(state: unknown, options: PackOptions = {}): Promise<string> {
  const deflate = createDeflateRaw({ level: constants.Z_BEST_SPEED });
  const [packed] = await Promise.all([buffer(deflate), pipeline(encodeInTimeSlices(state, options), deflate)]);
  return packed.toString("base64");
}

/** The reverse of {@link packState}; of a text that was not compressed too, as older versions stored it. */
export async function unpackState(stored: string): Promise<unknown> {
  const texts = stored.startsWith("{") ? [stored] : inflate(stored);
  const decoder = createStateDecoder();
  let begun = "";
  let endsAt = performance.now() + SLICE_MS;
  for await (const text of texts) {
    const lines = (begun + text).split("\n");
    begun = lines.pop() ?? "";
    for (const line of lines) {
      decoder.add(line);
      if (performance.now() < endsAt) continue;
      await nextTurn();
      endsAt = performance.now() + SLICE_MS;
    }
  }
  decoder.add(begun);
  return decoder.state();
}

async function* encodeInTimeSlices(
  state: unknown,
  { onEncoded, sliceMs = SLICE_MS }: PackOptions,
): AsyncGenerator<string, void, void> {
  let text = "";
  let endsAt = performance.now() + sliceMs;
  for (const piece of encodePieces(state)) {
    text += piece;
    if (performance.now() < endsAt) continue;
    yield text;
    text = "";
    await nextTurn();
    endsAt = performance.now() + sliceMs;
  }
  onEncoded?.();
  yield text;
}

function inflate(packed: string): AsyncIterable<string> {
  return Readable.from([Buffer.from(packed, "base64")])
    .pipe(createInflateRaw())
    .setEncoding("utf8");
}
