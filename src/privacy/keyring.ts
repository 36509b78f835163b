import { hash } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { markOfErased, type Owner, type Encryptor } from "../../events/encryption.ts";
import type { Clock } from "../platform/clock.ts";
import { openText, encryptText } from "./ciphertext.ts";
import { createClickKeys, type ClickKeys } from "./click-keys.ts";
import { dayOf, dayRef, type Purpose } from "./day-keys.ts";
import { newKey, openKeysFile, type KeysFile } from "./keys-file.ts";
import { textOf } from "./key-tree.ts";
import { createPersonKeys, type PersonKeys } from "./person-keys.ts";

/** Everything that is done with the keys of personal data. */
export interface Keyring extends Encryptor, Disposable {
  readonly file: KeysFile;
  /** Refs to destroy so that nothing more is kept of this person; beside those that their events are sealed with. */
  refsOf(who: Recipient): readonly string[];
  /** Whether they were erased: also where the log no longer tells so, as after a restore. */
  isForgotten(who: Recipient): boolean;
  /** The ref of the key that a box was sealed with. */
  refOf(box: string): string;
  /** Whether what was sealed with the key of that ref opens, or may be sealed yet. */
  has(ref: string): boolean;
  /**
   * Deletes the keys, so that nothing sealed with them opens again; of a handle all that it ever had but `spared`.
   * Answers how many were there.
   */
  destroy(refs: readonly string[], spared?: readonly string[]): number;
  /** Seals states that hold personal data. */
  sealState(name: string, state: string): string;
  /** Undefined: the key was replaced since. */
  openState(name: string, encrypted: string): string | undefined;
  /** States sealed so far are never opened again. */
  replaceStateKey(): void;
}

/** Keys that are not of a person or a day. */
const PEPPER = "pepper";
const STATES = "states";

/** Tells a person's key from the one they had before the key file was restored from an older copy. */
const CHECK_DIGITS = 8;

function checkOf(key: Uint8Array): string {
  return hash("sha256", Buffer.concat([Buffer.from("check"), key])).slice(0, CHECK_DIGITS);
}

/** Digits of a ref that tell an erased person from others. */
const MARK_DIGITS = 12;

/** Opens the key file, or makes it. Throws KeysFileMismatch. */
export function openKeyring(path: string, master: () => Uint8Array, clock: Clock): Keyring {
  const file = openKeysFile(path, master);
  try {
    ensureFixed(file, { [PEPPER]: newKey, [STATES]: newKey });
    return keyringOf(file, clock);
  } catch (fault) {
    file[Symbol.dispose]();
    throw fault;
  }
}

function keyringOf(file: KeysFile, clock: Clock): Keyring {
  const people = createPersonKeys(file, fixed(file, PEPPER));
  const clicks = createClickKeys(file);
  const days = createDayKeys(file);
  const refresh = (): void => {
    people.refresh();
    clicks.refresh();
    days.refresh();
  };
  const renew = createRenewal(file, refresh);
  const keyOf = (ref: string): Uint8Array | undefined => {
    if (ref.startsWith("c")) return clicks.at(ref);
    const key = ref.startsWith("p") ? people.at(ref) : days.at(ref);
    return key === "gone" ? undefined : key;
  };
  const namedKey = (
    owner: Exclude<Owner, { kind: "click" }>,
  ): { readonly ref: string; readonly key: Uint8Array | undefined } => {
    if (owner.kind !== "person") return days.of(owner.kind, clock());
    const ref = personRef(people, owner);
    return { ref, key: keyOf(ref) };
  };

  return {
    file,
    refresh,
    prepare(owners) {
      people.begin();
      people.ensure(refsOfPeople(people, owners));
    },
    keyFor(owner) {
      renew();
      if (owner.kind === "click") return clicks.of(owner.ip, clock());
      const { ref, key } = namedKey(owner);
      const name = owner.kind === "person" && key !== undefined ? `${ref}.${checkOf(key)}` : ref;
      return { prefix: `${file.id}:${name}:`, key: key && textOf({ key, below: "" }) };
    },
    open(box, context) {
      const [id, name = "", encrypted = ""] = box.split(":");
      if (id !== file.id || encrypted === "") return undefined;
      renew();
      const [ref = "", check] = name.split(".");
      const key = keyOf(ref);
      if (key === undefined || (check !== undefined && check !== checkOf(key))) return undefined;
      return openText(key, encrypted, context, ref);
    },
    markOf: (box) => (box.split(":")[1] ?? "").slice(1, 1 + MARK_DIGITS),
    refOf: (box) => box.split(/[:.]/, 2)[1] ?? "",
    refsOf: people.refsOf,
    isForgotten(who) {
      renew();
      return people.isErased(who);
    },
    has: (ref) => (ref.startsWith("p") ? file.get(ref) !== "gone" : keyOf(ref) !== undefined),
    destroy(refs, spared = []) {
      const destroyed = destroyAll({ file, clicks, people }, refs, spared);
      refresh();
      return destroyed;
    },
    // Asked for each time: another process may have replaced it.
    sealState: (name, state) => encryptText(fixed(file, STATES), state, name),
    openState(name, encrypted) {
      try {
        return openText(fixed(file, STATES), encrypted, name, STATES);
      } catch {
        return undefined;
      }
    },
    replaceStateKey: () => file.put(STATES, newKey()),
    [Symbol.dispose]: file[Symbol.dispose],
  };
}

/** Held keys are believed for so long: asking the file each time would cost more than sealing. */
const BELIEVED_MS = 50;

/** Calls `refresh` soon after another process has changed the keys. */
function createRenewal(file: KeysFile, refresh: () => void): () => void {
  let seen = file.version();
  let askedAt = performance.now();
  return () => {
    const now = performance.now();
    if (now - askedAt < BELIEVED_MS) return;
    askedAt = now;
    const version = file.version();
    if (version === seen) return;
    seen = version;
    refresh();
  };
}

interface Keys {
  readonly file: KeysFile;
  readonly clicks: ClickKeys;
  readonly people: PersonKeys;
}

function destroyAll({ file, clicks, people }: Keys, refs: readonly string[], spared: readonly string[]): number {
  const of = (ref: string) => (ref.startsWith("c") ? "click" : ref.startsWith("p") ? "person" : "day");
  const { click = [], person = [], day = [] } = Object.groupBy(refs, of);
  return file.change(() => {
    const other = [...people.under(person, new Set(spared)), ...day];
    return clicks.puncture(click) + other.filter((ref) => destroyOther(file, ref)).length;
  });
}

function destroyOther(file: KeysFile, ref: string): boolean {
  const known = file.get(ref);
  if (!ref.startsWith("p")) {
    // A day gets another key, of another ref.
    file.remove(ref);
    return known !== undefined;
  }
  // Also what has no key yet: nothing is ever sealed for an erased person.
  file.bury(ref);
  return known !== undefined && known !== "gone";
}

/** A key and what names it in a box. */
interface NamedKey {
  readonly ref: string;
  readonly key: Uint8Array;
}

/** Keys of whole days. */
function createDayKeys(file: KeysFile) {
  const held = new Map<string, Uint8Array>();
  const current = new Map<Purpose, { day: string; ref: string }>();
  const at = (ref: string): Uint8Array | undefined => {
    const known = held.get(ref) ?? file.get(ref);
    if (known === undefined || known === "gone") return undefined;
    if (held.size >= DAYS_MAX) held.clear();
    held.set(ref, known);
    return known;
  };
  return {
    at,
    of(purpose: Purpose, now: number): NamedKey {
      const day = dayOf(now);
      let today = current.get(purpose);
      if (today?.day !== day) {
        today = { day, ref: dayRef(file, purpose, day) };
        current.set(purpose, today);
      }
      const key = at(today.ref);
      if (key !== undefined) return { ref: today.ref, key };
      // Deleted while it was held: the day gets another one.
      current.delete(purpose);
      return this.of(purpose, now);
    },
    refresh(): void {
      held.clear();
      current.clear();
    },
  };
}

/** Keys of days held at once: some months. */
const DAYS_MAX = 512;

function personRef(people: PersonKeys, { id, username }: Extract<Owner, { kind: "person" }>): string {
  const mark = id === undefined ? undefined : markOfErased(id);
  if (mark !== undefined) return `p${mark}`;
  const who = { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
  return people.refOf(who);
}

function refsOfPeople(people: PersonKeys, owners: readonly Owner[]): readonly string[] {
  const refs: string[] = [];
  for (const owner of owners) if (owner.kind === "person" && !isErased(owner)) refs.push(personRef(people, owner));
  return refs;
}

function isErased({ id }: Extract<Owner, { kind: "person" }>): boolean {
  return id !== undefined && markOfErased(id) !== undefined;
}

function ensureFixed(file: KeysFile, makers: Readonly<Record<string, () => Uint8Array>>): void {
  if (Object.keys(makers).every((ref) => file.get(ref) !== undefined)) return;
  file.change(() => {
    for (const [ref, make] of Object.entries(makers)) if (file.get(ref) === undefined) file.put(ref, make());
  });
}

function fixed(file: KeysFile, ref: string): Uint8Array {
  const key = file.get(ref);
  if (key === undefined || key === "gone") throw new Error(`the key file has no ${ref}`);
  return key;
}
