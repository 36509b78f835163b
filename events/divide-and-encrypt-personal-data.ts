import type { Encoded, NewEvent } from "eventstore-lite";
import { InvalidEvent } from "./define-event.ts";
import { type EncryptionKey, type Owner, type Personal, ENCRYPTED, encodeRequest } from "./declare-personal-members.ts";

export type Data = Readonly<Record<string, unknown>>;

/**
 * Member of the encrypted text that holds the event's id, if folds decrypt the text. In all other texts the id is part
 * of the context that the ciphertext is bound to, but folds get no ids.
 */
const OF_EVENT = "$event";

export function ownerOf(personal: Personal, data: unknown): Owner {
  return personal.owner(data as never);
}

/** The data of an event, split into what is stored readable and what is encrypted. */
export interface Divided {
  readonly shown: Data;
  readonly hidden: Data;
}

/**
 * Splits the data of an event into readable and personal members. Undefined if nothing in it is personal, so that it is
 * stored unchanged. Personal members are undefined in `shown`, so that JSON leaves them out.
 */
export function divide({ members, shortened = NONE }: Personal, data: unknown): Divided | undefined {
  let shown: Record<string, unknown> | undefined;
  const hidden: Record<string, unknown> = {};
  const hide = (member: string, value: unknown, part?: string): void => {
    shown ??= { ...(data as Data) };
    shown[member] = part;
    hidden[member] = value;
  };
  for (const member of members) {
    const value = (data as Data)[member];
    if (value !== undefined) hide(member, value);
  }
  for (const member in shortened) {
    const value = (data as Data)[member];
    const part = value === undefined ? undefined : shortened[member]!(value as string);
    if (part !== value) hide(member, value, part);
  }
  return shown && { shown, hidden };
}

const NONE = {};

/**
 * Returns the event with its readable data, and a request to the writer thread to encrypt the rest. If the owner was
 * erased, nothing is encrypted: the stored ciphertext is only its prefix.
 */
export function encryptDivided(
  personal: Personal,
  { id, type, meta }: NewEvent,
  { shown, hidden }: Divided,
  { prefix, key }: EncryptionKey,
): Encoded {
  if (key === undefined) return { id, type, data: { ...shown, [ENCRYPTED]: prefix }, meta };
  const text = JSON.stringify(personal.inFolds ? { ...hidden, [OF_EVENT]: id } : hidden);
  const transformInput = encodeRequest({ prefix, key, context: contextOf(personal, type, id), text });
  return { id, type, data: shown, meta, transformInput };
}

/** Puts the decrypted personal members back into an event's data. */
function unite(data: unknown, hidden: Data): unknown {
  const whole: Record<string, unknown> = {};
  for (const member in data as Data) if (member !== ENCRYPTED) whole[member] = (data as Data)[member];
  return Object.assign(whole, hidden);
}

/** Returns the ciphertext in an event's stored data; undefined if nothing in it is personal. */
export function ciphertextOf(data: unknown): string | undefined {
  const ciphertext = typeof data === "object" && data !== null ? (data as Data)[ENCRYPTED] : undefined;
  return typeof ciphertext === "string" ? ciphertext : undefined;
}

export interface Opened {
  readonly data: unknown;
  readonly erased: boolean;
}

/**
 * Returns an event's data with its personal members. `text`: the decrypted text, undefined if its encryption key is
 * gone. `id` is undefined in a fold.
 */
export function openedWith(
  personal: Personal,
  { id, type, data }: { readonly id: string | undefined; readonly type: string; readonly data: unknown },
  text: string | undefined,
  mark: string,
): Opened {
  if (text === undefined) return { data: unite(data, personal.erased(mark)), erased: true };
  const { [OF_EVENT]: of, ...hidden } = JSON.parse(text) as Data;
  if (personal.inFolds && id !== undefined && of !== id) {
    throw new InvalidEvent(`${type}: its encrypted data belongs to another event`);
  }
  return { data: unite(data, hidden), erased: false };
}

/** Returns the context that binds a ciphertext to its event: a ciphertext moved to another event does not decrypt. */
export function contextOf({ inFolds }: Personal, type: string, id = ""): string {
  return inFolds ? type : `${type}|${id}`;
}
