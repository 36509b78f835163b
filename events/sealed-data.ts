import type { NewEvent } from "eventstore-lite";
import type { Owner, Personal, Sealer } from "./sealing.ts";

/** Holds everything of an event that is personal; no event has a member of this name. */
export const SEALED = "sealed";

type Data = Readonly<Record<string, unknown>>;

/** The event's identity inside of a box that folds open: they do not know the id, so it cannot be a part of the context. */
const OF_EVENT = "$event";

export function ownerOf(personal: Personal, data: unknown): Owner {
  return personal.owner(data as never);
}

/** The data as the log holds it. */
export function sealData(personal: Personal, { id, type, data }: NewEvent, sealer: Sealer): unknown {
  const shown: Record<string, unknown> = { ...(data as Data) };
  const hidden: Record<string, unknown> = {};
  for (const member of personal.members) {
    if (shown[member] === undefined) continue;
    hidden[member] = shown[member];
    delete shown[member];
  }
  for (const [member, shorten] of Object.entries(personal.shortened ?? {})) {
    const whole = shown[member] as string;
    const part = shorten(whole);
    if (part === whole) continue;
    hidden[member] = whole;
    shown[member] = part;
  }
  let isEmpty = true;
  for (const _ in hidden) isEmpty = false;
  if (isEmpty) return data;
  if (personal.inFolds) hidden[OF_EVENT] = id;
  shown[SEALED] = sealer.seal(ownerOf(personal, data), JSON.stringify(hidden), contextOf(personal, type, id));
  return shown;
}

/** The box of stored data; undefined when it holds none: it is of before sealing, or nothing in it is personal. */
export function boxOf(data: unknown): string | undefined {
  const box = typeof data === "object" && data !== null ? (data as Data)[SEALED] : undefined;
  return typeof box === "string" ? box : undefined;
}

export interface Opened {
  readonly data: unknown;
  readonly erased: boolean;
}

/** `id` is undefined in a fold. Without a sealer every box reads as erased. */
export function openData(
  personal: Personal,
  stored: { readonly id: string | undefined; readonly type: string; readonly data: unknown },
  box: string,
  sealer: Sealer | undefined,
): Opened {
  const { [SEALED]: _, ...shown } = stored.data as Data;
  const text = sealer?.open(box, contextOf(personal, stored.type, stored.id ?? ""));
  if (text === undefined) {
    return { data: { ...shown, ...personal.erased(sealer?.markOf(box) ?? "") }, erased: true };
  }
  const { [OF_EVENT]: of, ...hidden } = JSON.parse(text) as Data;
  if (personal.inFolds && stored.id !== undefined && of !== stored.id) throw new MovedBox(stored.type);
  return { data: { ...shown, ...hidden }, erased: false };
}

/** A box of another event was put into this one. */
export class MovedBox extends Error {
  override readonly name = "MovedBox";
  constructor(type: string) {
    super(`${type}: its sealed data belongs to another event`);
  }
}

/** Binds a box to its event. */
function contextOf({ inFolds }: Personal, type: string, id: string): string {
  return inFolds ? type : `${type}|${id}`;
}
