import { type AppendRequest, EVENT_FIELDS } from "./writer-messages.ts";
import { tooLarge } from "./prepare-append.ts";
import type { WriterTransform } from "../codec.ts";

/**
 * Finishes the events of an append in the writer thread, for example encrypts them, and changes them in place. Returns
 * the reason if the append is refused, else undefined.
 */
export type TransformAppend = (append: AppendRequest) => string | undefined;

/**
 * Loads the transform from the module that the store was opened with. Without a module, the transform refuses events
 * that the codec left unfinished, because the unfinished part would be lost.
 */
export async function loadWriterTransform(module: string | undefined): Promise<WriterTransform> {
  if (module === undefined) {
    return () => {
      throw new Error("the codec leaves events unfinished, and the log was opened without `writerTransform`");
    };
  }
  const { default: transform } = (await import(module)) as { default?: unknown };
  if (typeof transform !== "function") throw new Error(`${module} has no function as its default export`);
  return transform as WriterTransform;
}

export function createTransform(transform: WriterTransform, bytesMax: number): TransformAppend {
  return ({ fields, start, count }) => {
    const end = start + count * EVENT_FIELDS;
    for (let at = start; at < end; at += EVENT_FIELDS) {
      const input = fields[at + 4]!;
      if (input === "") continue;
      try {
        const data: unknown = transform(fields[at + 2]!, input);
        if (typeof data !== "string") throw new TypeError("what finishes it answers no text");
        fields[at + 2] = data;
      } catch (error) {
        return `an event could not be finished: ${error instanceof Error ? error.message : String(error)}`;
      }
      const refusal = tooLarge(fields[at]!, fields[at + 2]!, fields[at + 3]!, bytesMax);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
}
