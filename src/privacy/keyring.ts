import { hash } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { markOfErased, type Owner, type Encryptor } from "../../events/encryption.ts";
import type { Clock } from "../platform/clock.ts";
import type { SecretStoreOptions } from "../vault/sync-secret-store.ts";
import { openText, encryptText } from "./ciphertext.ts";
import { createClickKeys } from "./click-keys.ts";
import { createDayKeys } from "./day-keys.ts";
import { newKey, openKeyStore, type KeyStore } from "./key-store.ts";
import { createPersonKeys, type PersonKeys } from "./person-keys.ts";

/** Everything that is done with the keys of personal data. */
export interface Keyring extends Encryptor, Disposable {
  readonly keys: KeyStore;
  /** Names these keys in all that is encrypted with them: another log's, or ones that were made anew, have another id. */
  readonly id: string;
  /** Refs to destroy so that nothing more is kept of this person; beside those that their events are encrypted with. */
  refsOf(who: Recipient): readonly string[];
  /** Whether they were erased: also where the log no longer says so, as after a restore. */
  isForgotten(who: Recipient): boolean;
  /** The ref of the key that a ciphertext was made with. */
  refOf(ciphertext: string): string;
  /** Whether what was encrypted with the key of that ref opens, or may be encrypted yet. */
  has(ref: string): boolean;
  /**
   * Deletes the keys, so that nothing encrypted with them opens again; of a handle all that it ever had but `spared`.
   * Answers how many were there.
   */
  destroy(refs: readonly string[], spared?: readonly string[]): number;
  /** Encrypts states that hold personal data. */
  encryptState(name: string, state: string): string;
  /** Undefined: the key was replaced since. */
  openState(name: string, encrypted: string): string | undefined;
  /** States encrypted so far are never opened again. */
  replaceStateKey(): void;
}

/** Keys that are not of a person or a day. */
const PEPPER = "pepper";
const STATES = "states";

/** Tells the few key stores apart that one log ever has. */
const ID_DIGITS = 8;

/** Distinguishes a person's key from the one they had before the keys were restored from an older copy. */
const CHECK_DIGITS = 8;

/** The first digits of a hash, which disclose nothing of the key. */
function digitsOf(label: string, key: Uint8Array, digits: number): string {
  return hash("sha256", Buffer.concat([Buffer.from(label), key])).slice(0, digits);
}

/** Digits of a ref that distinguish an erased person. */
const MARK_DIGITS = 12;

/** Opens the keys of personal data, or makes them. Throws what the secret store throws. */
export function openKeyring(options: SecretStoreOptions, clock: Clock): Keyring {
  const keys = openKeyStore(options);
  try {
    const missing = [PEPPER, STATES].filter((ref) => keys.get(ref) === undefined);
    if (missing.length > 0) keys.change(() => missing.forEach((ref) => keys.put(ref, newKey())));
    return keyringOf(keys, clock);
  } catch (fault) {
    keys[Symbol.dispose]();
    throw fault;
  }
}

function keyringOf(keys: KeyStore, clock: Clock): Keyring {
  const pepper = fixed(keys, PEPPER);
  const id = digitsOf("id", pepper, ID_DIGITS);
  const people = createPersonKeys(keys, pepper);
  const clicks = createClickKeys(keys);
  const days = createDayKeys(keys);
  const kinds = { click: clicks, person: people, day: days };
  const refresh = (): void => Object.values(kinds).forEach((kind) => kind.refresh());
  const renew = createRenewal(keys, refresh);
  const keyOf = (ref: string): Uint8Array | undefined => {
    const key = kinds[kindOf(ref)].at(ref);
    return key === "gone" ? undefined : key;
  };
  const named = (owner: Owner): { readonly name: string; readonly key: Uint8Array | undefined } => {
    if (owner.kind === "person") {
      const ref = personRef(people, owner);
      const key = keyOf(ref);
      return { name: key === undefined ? ref : `${ref}.${checkOf(key)}`, key };
    }
    const { ref, key } = owner.kind === "click" ? clicks.of(owner.ip, clock()) : days.of(owner.kind, clock());
    return { name: ref, key };
  };

  return {
    keys,
    id,
    refresh,
    keysFor(owners) {
      people.prepare(owners.flatMap((owner) => (owner.kind === "person" && !isErased(owner) ? [owner] : [])));
      return owners.map((owner) => {
        renew();
        const { name, key } = named(owner);
        return { prefix: `${id}:${name}:`, key: key?.toHex() };
      });
    },
    open: (ciphertexts) =>
      ciphertexts.map(({ ciphertext, context }) => {
        const [madeWith, name = "", encrypted = ""] = ciphertext.split(":");
        if (madeWith !== id || encrypted === "") return undefined;
        renew();
        const [ref = "", check] = name.split(".");
        const key = keyOf(ref);
        if (key === undefined || (check !== undefined && check !== checkOf(key))) return undefined;
        return openText(key, encrypted, context, ref);
      }),
    markOf: (ciphertext) => (ciphertext.split(":")[1] ?? "").slice(1, 1 + MARK_DIGITS),
    refOf: (ciphertext) => ciphertext.split(/[:.]/, 2)[1] ?? "",
    refsOf: people.refsOf,
    isForgotten(who) {
      renew();
      return people.isErased(who);
    },
    has: (ref) => (ref.startsWith("p") ? keys.get(ref) !== "gone" : keyOf(ref) !== undefined),
    destroy(refs, spared = []) {
      const destroyed = keys.change(() => {
        const { click = [], person = [], day = [] } = Object.groupBy(refs, kindOf);
        const buried = people.under(person, new Set(spared)).filter((ref) => bury(keys, ref));
        return clicks.puncture(click) + buried.length + day.filter((ref) => remove(keys, ref)).length;
      });
      refresh();
      return destroyed;
    },
    ...createStateKey(keys),
    [Symbol.dispose]: keys[Symbol.dispose],
  };
}

/** The key of states. Asked for each time: another process may have replaced it. */
function createStateKey(keys: KeyStore): Pick<Keyring, "encryptState" | "openState" | "replaceStateKey"> {
  return {
    encryptState: (name, state) => encryptText(fixed(keys, STATES), state, name),
    openState(name, encrypted) {
      try {
        return openText(fixed(keys, STATES), encrypted, name, STATES);
      } catch {
        return undefined;
      }
    },
    replaceStateKey: () =>
      keys.change(() => {
        keys.remove(STATES);
        keys.put(STATES, newKey());
      }),
  };
}

/** Whose key a ref names. */
function kindOf(ref: string): "click" | "person" | "day" {
  if (ref.startsWith("c")) return "click";
  return ref.startsWith("p") ? "person" : "day";
}

/** Held keys are believed for so long: asking the store each time would cost more than encrypting. */
const BELIEVED_MS = 50;

/** Calls `refresh` soon after another process has changed the keys. */
function createRenewal(keys: KeyStore, refresh: () => void): () => void {
  let seen = keys.revision();
  let askedAt = performance.now();
  return () => {
    const now = performance.now();
    if (now - askedAt < BELIEVED_MS) return;
    askedAt = now;
    const revision = keys.revision();
    if (revision === seen) return;
    seen = revision;
    refresh();
  };
}

/** Also what has no key yet: nothing is ever encrypted for an erased person. */
function bury(keys: KeyStore, ref: string): boolean {
  const known = keys.get(ref);
  keys.bury(ref);
  return known !== undefined && known !== "gone";
}

/** A day gets another key, of another ref. */
function remove(keys: KeyStore, ref: string): boolean {
  const known = keys.get(ref);
  keys.remove(ref);
  return known !== undefined;
}

function checkOf(key: Uint8Array): string {
  return digitsOf("check", key, CHECK_DIGITS);
}

function personRef(people: PersonKeys, owner: Extract<Owner, { kind: "person" }>): string {
  const mark = owner.id === undefined ? undefined : markOfErased(owner.id);
  return mark === undefined ? people.refOf(owner) : `p${mark}`;
}

function isErased({ id }: Extract<Owner, { kind: "person" }>): boolean {
  return id !== undefined && markOfErased(id) !== undefined;
}

function fixed(keys: KeyStore, ref: string): Uint8Array {
  const key = keys.get(ref);
  if (key === undefined || key === "gone") throw new Error(`the keys of personal data lack ${ref}`);
  return key;
}
