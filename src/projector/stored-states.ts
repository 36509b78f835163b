import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { constants, createDeflateRaw, createInflateRaw } from "node:zlib";
import { createStateDecoder, encodePieces } from "../../projections/snapshot.ts";
import { createTimeSlices } from "../platform/time-slices.ts";

export interface PackOptions {
  /** Called once the state may change again. */
  readonly onEncoded?: () => void;
  /** How long it is encoded until others have their turn. */
  readonly sliceMs?: number | undefined;
}

/**
 * What a snapshot stores of a state: its text, compressed beside this thread to a tenth. It is encoded in time slices, and
 * decoded so: a list of 50,000 people takes a tenth of a second.
 */
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
  const slices = createTimeSlices();
  for await (const text of texts) {
    const lines = (begun + text).split("\n");
    begun = lines.pop() ?? "";
    for (const line of lines) {
      decoder.add(line);
      if (slices.isOver()) await slices.next();
    }
  }
  decoder.add(begun);
  return decoder.state();
}

async function* encodeInTimeSlices(
  state: unknown,
  { onEncoded, sliceMs }: PackOptions,
): AsyncGenerator<string, void, void> {
  let text = "";
  const slices = createTimeSlices(sliceMs);
  for (const piece of encodePieces(state)) {
    text += piece;
    if (!slices.isOver()) continue;
    yield text;
    text = "";
    await slices.next();
  }
  onEncoded?.();
  yield text;
}

function inflate(packed: string): AsyncIterable<string> {
  return Readable.from([Buffer.from(packed, "base64")])
    .pipe(createInflateRaw())
    .setEncoding("utf8");
}
