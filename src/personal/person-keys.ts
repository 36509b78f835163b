import { createHmac } from "node:crypto";
import type { Recipient } from "../../events/outreach.ts";
import { newKey, type KeysFile } from "./keys-file.ts";

/** One key a person. */
export interface PersonKeys {
  /**
   * The ref of whom an event is about: by id, or by handle while no id is known. Whoever was erased under one of the
   * names does not come back by the other.
   */
  refOf(who: Recipient): string;
  /** All refs under which something of this person may be sealed. */
  refsOf(who: Recipient): readonly string[];
  /** Makes the keys that are not there yet, durably. */
  ensure(refs: readonly string[]): void;
  /** `gone`: the person was erased. */
  at(ref: string): Uint8Array | "gone";
  refresh(): void;
}

/** Keys held at once; a fold over more people asks the file again. */
const HELD_MAX = 10_000;

/** 128 bits of a keyed hash: no two people share one. */
const REF_DIGITS = 32;

/** `pepper` is a secret, or refs could be computed of any name. */
export function createPersonKeys(file: KeysFile, pepper: Uint8Array): PersonKeys {
  const held = new Map<string, Uint8Array | "gone">();
  const ref = (kind: "id" | "handle", value: string): string =>
    `p${createHmac("sha256", pepper).update(`${kind}\n${value}`, "utf8").digest("hex").slice(0, REF_DIGITS)}`;

  const look = (wanted: string): Uint8Array | "gone" | undefined => {
    const known = held.get(wanted) ?? file.get(wanted);
    if (known === undefined) return undefined;
    if (held.size >= HELD_MAX) held.clear();
    held.set(wanted, known);
    return known;
  };

  const refsOf = ({ id, username }: Recipient): readonly string[] => [
    ...(id === undefined ? [] : [ref("id", id)]),
    ...(username === undefined ? [] : [ref("handle", username.toLowerCase())]),
  ];

  return {
    refOf(who) {
      const refs = refsOf(who);
      return refs.find((one) => look(one) === "gone") ?? refs[0] ?? ref("handle", "");
    },
    refsOf,
    ensure(refs) {
      if (refs.every((wanted) => look(wanted) !== undefined)) return;
      file.change(() => {
        for (const wanted of refs) if (file.get(wanted) === undefined) file.put(wanted, newKey());
      });
    },
    // Never made: the key file is older than what it is asked for.
    at: (wanted) => look(wanted) ?? "gone",
    refresh: () => held.clear(),
  };
}
