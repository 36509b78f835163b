import { createHmac, randomBytes } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { newKey, type KeyStore } from "./key-store.ts";

/**
 * The keys of people. Who is known by id has one. A handle is no person, since it changes hands: what is recorded of
 * a handle alone gets a key of its own in each append, so that forgetting its holder reaches nothing of another one.
 */
export interface PersonKeys {
  /** Before an append: makes the keys of everybody it is about that are not there yet, durably; none for the erased. */
  prepare(people: readonly Named[]): void;
  /** The ref for what is recorded of somebody; of an erased one a ref whose key is gone. */
  refOf(who: Named): string;
  /** Whether they were erased, as far as the name shows. */
  isErased(who: Recipient): boolean;
  /**
   * Refs to destroy so that nothing more is kept of somebody. With an id, the handle counts only where it stands
   * alone: with another id it is somebody else's. Without one nobody can say so, and it counts for everybody.
   */
  refsOf(who: Recipient): readonly string[];
  /** Of `refs`, and of the handles among them, all that there is a key of; but not `spared`, which is other people's. */
  under(refs: readonly string[], spared: ReadonlySet<string>): readonly string[];
  /** `gone`: the person was erased. */
  at(ref: string): Uint8Array | "gone";
  refresh(): void;
}

/** Keys held at once; a fold over more people asks the file again. */
const HELD_MAX = 10_000;

/** 128 bits of a keyed hash: no two people share one. */
const REF_DIGITS = 32;

/** Tells the keys of one handle apart. */
const APPEND_BYTES = 4;

/** Behind the ref of a handle: only where the handle stands alone. */
const ALONE = "-";

/** The ref of an id or a handle, of whatever key of it. */
export function baseOf(ref: string): string {
  return ref.slice(0, 1 + REF_DIGITS);
}

/** `pepper` is a secret, or refs could be computed of any name. */
export function createPersonKeys(file: KeyStore, pepper: Uint8Array): PersonKeys {
  const held = new Map<string, Found>();
  /** Of the append that was prepared last: handle -> its ref there, person -> their ref, ref -> its key. */
  const given = new Map<string, string>();
  const refs = new Map<string, string>();
  let keys: ReadonlyMap<string, Found> = new Map();
  const names = createNames(pepper);

  const look = (wanted: string): Found | undefined => {
    const known = keys.get(wanted) ?? held.get(wanted) ?? file.get(wanted);
    if (known === undefined) return undefined;
    if (held.size >= HELD_MAX) held.clear();
    held.set(wanted, known);
    return known;
  };

  const refInAppend = (handle: string): string => {
    const known = given.get(handle) ?? handle + randomBytes(APPEND_BYTES).toString("hex");
    given.set(handle, known);
    return known;
  };

  /** `named`: as {@link Names.all} gives them. */
  const refAmong = (named: readonly string[], { id, username = "" }: Named, find: typeof look): string => {
    const erased = named.find((one) => find(one) === "gone");
    return erased ?? (id === undefined ? refInAppend(names.ofHandle(username)) : (named[0] ?? ""));
  };

  return {
    prepare(people) {
      // Clicks are about no person, and asking the file costs a third of what their requests take in all.
      if (people.length === 0) return;
      given.clear();
      const revision = file.revision();
      const named = people.map(names.all);
      let found = file.getAll(named.flat());
      const refOf = (who: Named, at: number): string => refAmong(named[at] ?? [], who, (one) => found.get(one));
      const missing = people.map(refOf).filter((one) => !found.has(one));
      if (missing.length > 0) found = new Map([...found, ...makeKeys(file, missing, revision)]);
      keys = found;
      refs.clear();
      for (const [at, who] of people.entries()) refs.set(textOf(who), refOf(who, at));
    },
    refOf: (who) => refs.get(textOf(who)) ?? refAmong(names.all(who), who, look),
    isErased: (who) => names.all(who).some((one) => look(one) === "gone"),
    refsOf({ id, username }) {
      const handle = username === undefined ? [] : [names.ofHandle(username)];
      return id === undefined ? handle : [names.ofId(id), ...handle.map((one) => one + ALONE)];
    },
    under(wanted, spared) {
      const bases = wanted.filter((one) => one === baseOf(one) || one.endsWith(ALONE)).map(baseOf);
      const found = bases.flatMap((base) => file.refs(base)).filter((one) => one !== baseOf(one) && !spared.has(one));
      return [...new Set([...wanted, ...found])];
    },
    // Never made: the key file is older than what it is asked for.
    at: (wanted) => look(wanted) ?? "gone",
    refresh() {
      held.clear();
      refs.clear();
      keys = new Map();
    },
  };
}

/**
 * Makes keys durably, but none for who was erased. `revision`: the one in which they were missing. Answers what is
 * there then.
 */
function makeKeys(file: KeyStore, missing: readonly string[], revision: number): ReadonlyMap<string, Found> {
  return file.change(() => {
    const made = new Map<string, Found>();
    if (file.revision() !== revision) {
      // Another process may have made or erased some of them meanwhile.
      const names = missing.flatMap((one) => [one, baseOf(one), baseOf(one) + ALONE]);
      for (const [one, key] of file.getAll(names)) made.set(one, key);
    }
    // In their order in the file, whose pages are written once each then.
    for (const one of missing.toSorted()) {
      if (made.has(one) || made.get(baseOf(one)) === "gone" || made.get(baseOf(one) + ALONE) === "gone") continue;
      const key = newKey();
      file.put(one, key);
      made.set(one, key);
    }
    return made;
  });
}

interface Names {
  ofId(id: string): string;
  ofHandle(username: string): string;
  /** The refs by which an erasure of somebody is found: that of an id first, and of a handle alone what was only its. */
  all(who: Named): readonly string[];
}

function createNames(pepper: Uint8Array): Names {
  const ref = (kind: "id" | "handle", value: string): string =>
    `p${createHmac("sha256", pepper).update(`${kind}\n${value}`, "utf8").digest("hex").slice(0, REF_DIGITS)}`;
  const ofId = (id: string): string => ref("id", id);
  const ofHandle = (username: string): string => ref("handle", username.toLowerCase());
  return {
    ofId,
    ofHandle,
    all({ id, username }) {
      const handle = username === undefined ? [] : [ofHandle(username)];
      return id === undefined ? [...handle, ...handle.map((one) => one + ALONE)] : [ofId(id), ...handle];
    },
  };
}

/** A person as an event names them. */
type Named = { readonly [Name in keyof Recipient]: Recipient[Name] | undefined };

type Found = Uint8Array | "gone";

function textOf({ id = "", username = "" }: Named): string {
  return `${id}\n${username}`;
}
