import type { Awaitable } from "eventstore-lite";
import type { EventSpec } from "./event.ts";

/** Whose key encrypts the personal data of an event. */
export type Owner =
  | {
      readonly kind: "person";
      readonly id?: string | undefined;
      readonly username?: string | undefined;
      /** Each event has a key of its own, and once they are deleted nothing says whose events they were. */
      readonly isUnlinkable?: true;
    }
  | { readonly kind: "click"; readonly ip: string | undefined }
  /** Messages to our own team, and answers to callers: data of no one person. */
  | { readonly kind: "message" | "answer" };

/** What of an event is personal. A member may be absent. */
export interface Personal<Member extends string = string, InFolds extends boolean = boolean> {
  owner(data: never): Owner;
  /** These are encrypted whole. */
  readonly members: readonly Member[];
  /** Of these a part stays readable. */
  readonly shortened?: Readonly<Record<string, (value: string) => string>>;
  /** Whether folds see the members; decrypting costs as much as the rest of reading. */
  readonly inFolds: InFolds;
  /** What stands for the members once the key is gone; `mark` tells people apart. */
  erased(mark: string): Readonly<Record<string, unknown>>;
}

export interface PersonalSpec {
  readonly personal?: Personal;
}

/** Marks the personal members of an event. */
export function withPersonal<
  Spec extends EventSpec,
  const Member extends keyof Spec["data"]["properties"] & string,
  const InFolds extends boolean,
>(spec: Spec, personal: Personal<Member, InFolds>): Spec & { readonly personal: Personal<Member, InFolds> } {
  return { ...spec, personal };
}

/** Members that folds do not see. */
export type HiddenOf<Spec> = Spec extends { readonly personal: Personal<infer Member, false> } ? Member : never;

/** A key, and how the ciphertexts begin that are encrypted with it. */
export interface EncryptionKey {
  readonly prefix: string;
  /** 32 bytes in hex. Undefined: the owner was erased. Their ciphertexts stay empty, and are nothing but the prefix. */
  readonly key: string | undefined;
}

/** What was encrypted, and what it is bound to. */
export interface Ciphertext {
  readonly ciphertext: string;
  readonly context: string;
}

/**
 * Chooses keys and opens; the keys are elsewhere, so that they can be deleted while the log stays as it is. Answers are
 * in the order of what was given, and promises only where keys have to be made or fetched.
 */
export interface Encryptor {
  /** What to encrypt the data of these owners with, all of one append. Keys that are missing are made durable first. */
  keysFor(owners: readonly Owner[]): Awaitable<readonly EncryptionKey[]>;
  /** Undefined: the key is gone, so the ciphertext can never be opened. Throws when one was damaged or moved. */
  open(ciphertexts: readonly Ciphertext[]): Awaitable<readonly (string | undefined)[]>;
  /** Stands for the person that the ciphertext was about. */
  markOf(ciphertext: string): string;
  /** Keys may have been deleted elsewhere: what is held of them is used again once it is known that they were not. */
  revalidate(): void;
}

/** What is shown in the place of erased text. */
export const ERASED = "erased";

const ERASED_PERSON = `${ERASED}:`;

/** The id and the name of a person who was erased. */
export function erasedPerson(mark: string): string {
  return ERASED_PERSON + mark;
}

/** The mark of an erased person; undefined for an id that is one. */
export function markOfErased(id: string): string | undefined {
  return id.startsWith(ERASED_PERSON) ? id.slice(ERASED_PERSON.length) : undefined;
}

/** Holds everything of an event that is personal; no event has a member of this name. */
export const ENCRYPTED = "ciphertext";

/** A request to the writer thread to encrypt a text; the request thread only chooses the key. */
interface EncryptionRequest {
  /** The start of the ciphertext. */
  readonly prefix: string;
  /** As of {@link EncryptionKey}. */
  readonly key: string;
  /** What the ciphertext is bound to. */
  readonly context: string;
  readonly text: string;
}

/** Keys, names and JSON hold none. */
const SEPARATOR = "\t";

export function encodeRequest({ prefix, key, context, text }: EncryptionRequest): string {
  return prefix + SEPARATOR + key + SEPARATOR + context + SEPARATOR + text;
}

export function decodeRequest(request: string): EncryptionRequest {
  const parts = request.split(SEPARATOR);
  if (parts.length !== 4) throw new Error("a request to encrypt has four parts");
  const [prefix, key, context, text] = parts as [string, string, string, string];
  return { prefix, key, context, text };
}

/** The JSON of an event's data with a ciphertext in it, which holds nothing that JSON escapes. */
export function withCiphertext(data: string, ciphertext: string): string {
  const members = data.slice(0, -1);
  return `${members}${members === "{" ? "" : ","}"${ENCRYPTED}":"${ciphertext}"}`;
}
