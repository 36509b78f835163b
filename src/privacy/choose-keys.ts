import type { Awaitable } from "eventstore-lite";
import { markOfErased, type EncryptionKey, type Owner } from "../../events/encryption.ts";
import type { Clock } from "../platform/clock.ts";
import { createClickKeys } from "./click-keys.ts";
import { createDayKeys } from "./day-keys.ts";
import { type KeyStore, type NamedKey, formatCheck } from "./key-store.ts";
import type { PersonKey, PersonKeys } from "./person-keys.ts";

/** Chooses the keys that the events of an append are encrypted with. */
export interface KeyChoice {
  /** As of an encryptor. */
  keysFor(owners: readonly Owner[]): Awaitable<readonly EncryptionKey[]>;
  /** Keys may have been deleted. */
  refresh(): void;
}

interface KeyChoiceDeps {
  readonly keys: KeyStore;
  readonly people: PersonKeys;
  /** Names the keys in ciphertexts. */
  readonly id: string;
  readonly clock: Clock;
}

type Person = Extract<Owner, { kind: "person" }>;

export function createKeyChoice({ keys, people, id, clock }: KeyChoiceDeps): KeyChoice {
  const clicks = createClickKeys(keys);
  const days = createDayKeys(keys);
  const encryptionKey = (name: string, key: Uint8Array | undefined): EncryptionKey => ({
    prefix: `${id}:${name}:`,
    key: key?.toHex(),
  });

  /** Made once for each key that is held, and no longer there than it is: all clicks of an address have the same. */
  const made = new WeakMap<NamedKey, EncryptionKey>();
  const asEncryptionKey = (found: NamedKey): EncryptionKey => {
    const known = made.get(found);
    if (known !== undefined) return known;
    const key = encryptionKey(found.ref, found.key);
    made.set(found, key);
    return key;
  };

  /** Undefined: it has to be fetched or made. */
  const cachedKey = (owner: Owner): NamedKey | undefined => {
    if (owner.kind === "person") return undefined;
    return owner.kind === "click" ? clicks.of(owner.ip, clock()) : days.of(owner.kind, clock());
  };
  const cachedKeys = (owners: readonly Owner[]): readonly EncryptionKey[] | undefined => {
    const chosen: EncryptionKey[] = [];
    for (const owner of owners) {
      const found = cachedKey(owner);
      if (found === undefined) return undefined;
      chosen.push(asEncryptionKey(found));
    }
    return chosen;
  };
  const keyOfNobody = async (owner: Exclude<Owner, Person>): Promise<EncryptionKey> => {
    for (;;) {
      const found = cachedKey(owner);
      if (found !== undefined) return asEncryptionKey(found);
      await (owner.kind === "click" ? clicks.prepare(clock()) : days.prepare(owner.kind, clock()));
    }
  };
  /** `found` is absent for who was erased already, and is nothing but a mark. */
  const keyOfPerson = (owner: Person, found: PersonKey | undefined): EncryptionKey => {
    if (found === undefined) return encryptionKey(`p${findMark(owner)}`, undefined);
    const { ref, key } = found;
    return key === "gone" ? encryptionKey(ref, undefined) : encryptionKey(`${ref}.${formatCheck(key)}`, key);
  };
  const fetchKeys = async (owners: readonly Owner[]): Promise<readonly EncryptionKey[]> => {
    const named = owners.filter((owner) => owner.kind === "person").filter((owner) => findMark(owner) === undefined);
    const keysOfPeople = await people.keysFor(named);
    const byOwner = new Map<Owner, PersonKey>(named.map((owner, at) => [owner, keysOfPeople[at]!]));
    const chosen: EncryptionKey[] = [];
    for (const owner of owners) {
      chosen.push(owner.kind === "person" ? keyOfPerson(owner, byOwner.get(owner)) : await keyOfNobody(owner));
    }
    return chosen;
  };

  return {
    keysFor: (owners) => cachedKeys(owners) ?? fetchKeys(owners),
    refresh() {
      clicks.refresh();
      days.refresh();
    },
  };
}

/** Of who was erased already. */
function findMark({ id }: Person): string | undefined {
  return id === undefined ? undefined : markOfErased(id);
}
