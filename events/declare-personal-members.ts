import type { Awaitable } from "eventstore-lite";
import type { EventSpec } from "./define-event.ts";

/** Owner of an event's personal data, whose encryption key encrypts it. */
export type Owner =
  | {
      readonly kind: "person";
      readonly id?: string | undefined;
      readonly username?: string | undefined;
      /**
       * True if each event gets its own encryption key. Once the keys are deleted, the log does not show which events
       * belonged to the same person.
       */
      readonly isUnlinkable?: true;
    }
  | { readonly kind: "click"; readonly ip: string | undefined }
  /** Owner of messages to the operator's team and of answers to callers: their data belongs to no single person. */
  | { readonly kind: "message" | "answer" };

/** Description of the personal members of a type of event. A member may be absent. */
export interface Personal<Member extends string = string, InFolds extends boolean = boolean> {
  owner(data: never): Owner;
  /**
   * Names of the members of the event's data whose values are personal. The log encrypts each value as a whole, except
   * that a part of a text in `shortened` stays readable.
   */
  readonly members: readonly Member[];
  /** Functions that return the readable part of a member's text. The remaining text is encrypted. */
  readonly shortened?: Readonly<Record<string, (value: string) => string>>;
  /** True if folds see the personal members. Decrypting an event costs as much time as reading it otherwise takes. */
  readonly inFolds: InFolds;
  /**
   * Returns the values that replace the personal members once the encryption key is gone; `mark` tells erased
   * recipients apart.
   */
  erased(mark: string): Readonly<Record<string, unknown>>;
}

export interface PersonalSpec {
  readonly personal?: Personal;
}

/** Adds to an event's definition which of its members are personal. */
export function withPersonal<
  Spec extends EventSpec,
  const Member extends keyof Spec["data"]["properties"] & string,
  const InFolds extends boolean,
>(spec: Spec, personal: Personal<Member, InFolds>): Spec & { readonly personal: Personal<Member, InFolds> } {
  return { ...spec, personal };
}

/** Names of the personal members that folds do not see. */
export type HiddenOf<Spec> = Spec extends { readonly personal: Personal<infer Member, false> } ? Member : never;

/** Encryption key, and the prefix of the ciphertexts that it encrypts. */
export interface EncryptionKey {
  readonly prefix: string;
  /**
   * Encryption key, 32 bytes in hex. Undefined if the owner was erased: the event's personal data is then dropped, and
   * the event stores only `prefix` in place of a ciphertext.
   */
  readonly key: string | undefined;
}

/** Ciphertext, and the context that it is bound to. */
export interface Ciphertext {
  readonly ciphertext: string;
  readonly context: string;
}

/**
 * Chooses encryption keys and decrypts. The keys are stored outside the log, so that they can be deleted while the log
 * stays as it is. Results are in the order of the input, and promises only if keys must be made or fetched.
 */
export interface Encryptor {
  /** Returns the keys that encrypt the data of these owners, all of one append. Missing keys are made durable first. */
  keysFor(owners: readonly Owner[]): Awaitable<readonly EncryptionKey[]>;
  /**
   * Decrypts ciphertexts. Undefined if a key is gone, so that its ciphertext can never be decrypted. Throws if a
   * ciphertext was damaged or moved.
   */
  open(ciphertexts: readonly Ciphertext[]): Awaitable<readonly (string | undefined)[]>;
  /**
   * Returns the mark of the owner, which is a part of the ciphertext's prefix. An erased recipient is shown by this
   * mark instead of their id and handle.
   */
  markOf(ciphertext: string): string;
  /**
   * The log's codec calls this when another process may have deleted encryption keys. From then on, a cached key is
   * used only after a check that it still exists.
   */
  revalidate(): void;
}

/** Text shown in place of a person's text that was erased. */
export const ERASED = "erased";

const ERASED_PERSON = `${ERASED}:`;

/** The id and the username of an erased recipient. */
export function erasedPerson(mark: string): string {
  return ERASED_PERSON + mark;
}

/**
 * Returns the part of an erased recipient's id that tells the recipient from other erased recipients; undefined for the
 * id of a recipient who was not erased.
 */
export function markOfErased(id: string): string | undefined {
  return id.startsWith(ERASED_PERSON) ? id.slice(ERASED_PERSON.length) : undefined;
}

/**
 * Name of the member that holds the ciphertext of all personal data of an event; no event has a member of this name.
 */
export const ENCRYPTED = "ciphertext";

/** A request to the writer thread to encrypt a text; the request thread only chooses the key. */
interface EncryptionRequest {
  /** The prefix with which the ciphertext begins. */
  readonly prefix: string;
  /** Encryption key, 32 bytes in hex. */
  readonly key: string;
  /** The context that the ciphertext will be bound to. */
  readonly context: string;
  readonly text: string;
}

/** Character between the parts of a request; no key, name or JSON contains it. */
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

/** Adds a ciphertext as a member to the JSON of an event's data. JSON needs to escape nothing in it. */
export function withCiphertext(data: string, ciphertext: string): string {
  const members = data.slice(0, -1);
  return `${members}${members === "{" ? "" : ","}"${ENCRYPTED}":"${ciphertext}"}`;
}
