import { type AppendRequest, EVENT_FIELDS } from "./messages.ts";
import { tooLarge } from "./prepare.ts";
import type { Finish } from "../store.ts";

/** Finishes the events of an append in place. Answers why it is refused; undefined: it is not. */
export type Finishing = (append: AppendRequest) => string | undefined;

/** Loads what the store was opened with. Without it nothing may be left unfinished: stored so, it would be lost. */
export async function loadFinish(module: string | undefined): Promise<Finish> {
  if (module === undefined) {
    return () => {
      throw new Error("the codec leaves events unfinished, and the log was opened without `finish`");
    };
  }
  const { default: finish } = (await import(module)) as { default?: unknown };
  if (typeof finish !== "function") throw new Error(`${module} has no function as its default export`);
  return finish as Finish;
}

export function createFinishing(finish: Finish, bytesMax: number): Finishing {
  return ({ fields, start, count }) => {
    const end = start + count * EVENT_FIELDS;
    for (let at = start; at < end; at += EVENT_FIELDS) {
      const unfinished = fields[at + 4]!;
      if (unfinished === "") continue;
      try {
        const data: unknown = finish(fields[at + 2]!, unfinished);
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
