import type { Encoded, NewEvent } from "eventstore-lite";
import { InvalidEvent } from "./event.ts";
import { ENCRYPTED, writeOrder } from "./encryption-order.ts";
import type { Owner, Personal, Encryptor } from "./encryption.ts";

export type Data = Readonly<Record<string, unknown>>;

/** The event's id inside of a ciphertext that folds open: they do not know it, so it cannot be a part of the context. */
const OF_EVENT = "$event";

export function ownerOf(personal: Personal, data: unknown): Owner {
  return personal.owner(data as never);
}

export interface Closed {
  /** The event as the log holds it, but for the ciphertext, which the writer thread makes. */
  readonly event: Encoded;
  /** The ciphertext stayed empty. */
  readonly isErased: boolean;
}

/** Undefined: nothing in it is personal, and it is stored as it is. */
export function encryptData(
  personal: Personal,
  { id, type, data, meta }: NewEvent,
  encryptor: Encryptor,
): Closed | undefined {
  const shown: Record<string, unknown> = {};
  const hidden: Record<string, unknown> = {};
  let isEmpty = true;
  for (const member in data as Data) {
    const value = (data as Data)[member];
    const part = shownOf(personal, member, value);
    if (part !== undefined) shown[member] = part;
    if (part === value) continue;
    hidden[member] = value;
    isEmpty = false;
  }
  if (isEmpty) return undefined;
  const { prefix, key } = encryptor.keyFor(ownerOf(personal, data));
  if (key === undefined) {
    shown[ENCRYPTED] = prefix;
    return { event: { id, type, data: shown, meta }, isErased: true };
  }
  const text = JSON.stringify(personal.inFolds ? { ...hidden, [OF_EVENT]: id } : hidden);
  const unfinished = writeOrder({ prefix, key, context: contextOf(personal, type, id), text });
  return { event: { id, type, data: shown, meta, unfinished }, isErased: false };
}

/** What of a member stays readable; undefined: nothing. */
function shownOf({ members, shortened }: Personal, member: string, value: unknown): unknown {
  if (members.includes(member)) return undefined;
  const shorten = shortened?.[member];
  return shorten === undefined ? value : shorten(value as string);
}

/** Puts the members of a ciphertext back in their places. */
export function unite(data: unknown, hidden: Data): unknown {
  const whole: Record<string, unknown> = {};
  for (const member in data as Data) if (member !== ENCRYPTED) whole[member] = (data as Data)[member];
  return Object.assign(whole, hidden);
}

/** The ciphertext of stored data; undefined when it holds none: nothing in it is personal. */
export function ciphertextOf(data: unknown): string | undefined {
  const ciphertext = typeof data === "object" && data !== null ? (data as Data)[ENCRYPTED] : undefined;
  return typeof ciphertext === "string" ? ciphertext : undefined;
}

export interface Opened {
  readonly data: unknown;
  readonly erased: boolean;
}

/** `id` is undefined in a fold. Without a encryptor every ciphertext reads as erased. */
export function openData(
  personal: Personal,
  stored: { readonly id: string | undefined; readonly type: string; readonly data: unknown },
  ciphertext: string,
  encryptor: Encryptor | undefined,
): Opened {
  const text = encryptor?.open(ciphertext, contextOf(personal, stored.type, stored.id ?? ""));
  if (text === undefined) {
    return { data: unite(stored.data, personal.erased(encryptor?.markOf(ciphertext) ?? "")), erased: true };
  }
  const { [OF_EVENT]: of, ...hidden } = JSON.parse(text) as Data;
  if (personal.inFolds && stored.id !== undefined && of !== stored.id) {
    throw new InvalidEvent(`${stored.type}: its encrypted data belongs to another event`);
  }
  return { data: unite(stored.data, hidden), erased: false };
}

/** Binds a ciphertext to its event. */
function contextOf({ inFolds }: Personal, type: string, id: string): string {
  return inFolds ? type : `${type}|${id}`;
}
