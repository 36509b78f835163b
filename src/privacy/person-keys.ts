import { createHmac, randomBytes } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { newKey, type KeyStore } from "./key-store.ts";

/**
 * The keys of people. Who is known by id has one. A handle is no person, since it changes hands: what is told of a
 * handle alone gets a key of its own in each append, so that forgetting its holder reaches nothing of another one.
 */
export interface PersonKeys {
  /** An append begins. */
  begin(): void;
  /** The ref for what is told of somebody; of an erased one a ref whose key is gone. */
  refOf(who: Recipient): string;
  /** Whether they were erased, as far as the name tells. */
  isErased(who: Recipient): boolean;
  /**
   * Refs to destroy so that nothing more is kept of somebody. With an id, the handle counts only where it stands
   * alone: with another id it is somebody else's. Without one nobody can say so, and it counts for everybody.
   */
  refsOf(who: Recipient): readonly string[];
  /** Of `refs`, and of the handles among them, all that there is a key of; but not `spared`, which is other people's. */
  under(refs: readonly string[], spared: ReadonlySet<string>): readonly string[];
  /** Makes the keys that are not there yet, durably; none for a handle that was erased meanwhile. */
  ensure(refs: readonly string[]): void;
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
  const held = new Map<string, Uint8Array | "gone">();
  /** Handle -> the ref that it has in this append. */
  const given = new Map<string, string>();
  const ref = (kind: "id" | "handle", value: string): string =>
    `p${createHmac("sha256", pepper).update(`${kind}\n${value}`, "utf8").digest("hex").slice(0, REF_DIGITS)}`;
  const ofHandle = (username: string): string => ref("handle", username.toLowerCase());

  const look = (wanted: string): Uint8Array | "gone" | undefined => {
    const known = held.get(wanted) ?? file.get(wanted);
    if (known === undefined) return undefined;
    if (held.size >= HELD_MAX) held.clear();
    held.set(wanted, known);
    return known;
  };

  const erasedRefOf = ({ id, username }: Recipient): string | undefined => {
    const handle = username === undefined ? [] : [ofHandle(username)];
    const refs = id === undefined ? [...handle, ...handle.map((one) => one + ALONE)] : [ref("id", id), ...handle];
    return refs.find((one) => look(one) === "gone");
  };

  const refInAppend = (handle: string): string => {
    const known = given.get(handle) ?? handle + randomBytes(APPEND_BYTES).toString("hex");
    given.set(handle, known);
    return known;
  };

  const isBuried = (handle: string): boolean => file.get(handle) === "gone" || file.get(handle + ALONE) === "gone";

  return {
    begin: () => given.clear(),
    refOf(who) {
      const erased = erasedRefOf(who);
      if (erased !== undefined) return erased;
      return who.id === undefined ? refInAppend(ofHandle(who.username ?? "")) : ref("id", who.id);
    },
    isErased: (who) => erasedRefOf(who) !== undefined,
    refsOf({ id, username }) {
      const handle = username === undefined ? [] : [ofHandle(username)];
      return id === undefined ? handle : [ref("id", id), ...handle.map((one) => one + ALONE)];
    },
    under(refs, spared) {
      const bases = refs.filter((one) => one === baseOf(one) || one.endsWith(ALONE)).map(baseOf);
      const found = bases.flatMap((base) => file.refs(base)).filter((one) => one !== baseOf(one) && !spared.has(one));
      return [...new Set([...refs, ...found])];
    },
    ensure(refs) {
      if (refs.every((wanted) => look(wanted) !== undefined)) return;
      file.change(() => {
        for (const wanted of refs) {
          const mayBe = wanted === baseOf(wanted) || !isBuried(baseOf(wanted));
          if (mayBe && file.get(wanted) === undefined) file.put(wanted, newKey());
        }
      });
    },
    // Never made: the key file is older than what it is asked for.
    at: (wanted) => look(wanted) ?? "gone",
    refresh: () => held.clear(),
  };
}
