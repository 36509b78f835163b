import { contacts, findContact, type Contact, type Contacts } from "../../../projections/contacts.ts";
import { historyOfPerson } from "../../../src/commands/audit/show/person.ts";
import { findPerson } from "../../../src/commands/person.ts";
import { findEncrypted } from "../../../src/privacy/find-person.ts";
import { destroyKeys } from "../../../src/privacy/apply-erasures.ts";
import { person } from "../social-network.ts";
import { RULES } from "../world.ts";
import type { House } from "./house.ts";
import { personId, rowOf } from "./setting.ts";

/** An operator erases the person, as `reachlog forget` does. */
export async function forget(house: House, id: string): Promise<void> {
  const { log, store, append, forgotten } = house;
  const { position: to } = await store.head();
  const history = await historyOfPerson({ store, to, onProgress: () => {} }, id);
  if (history === undefined) return;
  const known = await knownPeople(house);
  const person = await findEncrypted(log, {
    contacts: known,
    contact: findPerson(known, id),
    positions: history.positions,
  });
  const { own, keys, spared } = person;
  const data = { hashes: own.flatMap((name) => RULES.hashes(name)), keys: [...keys], spared: [...spared] };
  forgotten.add(id);
  await append([{ type: "PersonForgotten", data }]);
  destroyKeys(log.keyring, data);
  log.keyring.replaceStateKey();
}

/** A person takes another handle; `list`: and is imported by it once more. */
export async function rename(house: House, { whom, list }: { whom: number; list: boolean }): Promise<void> {
  const { people, network, append } = house;
  const id = personId(whom % people.length);
  const user = network.people.get(id);
  // Who is known by nothing but a handle is lost with it.
  if (user === undefined || people[whom % people.length] === "by_handle") return;
  const known = await knownHolder(house, user.username);
  if (known !== undefined && known.id !== id) return;
  const username = `${user.username}_2`;
  network.people.set(id, { ...user, username });
  if (list) await append([rowOf(people[whom % people.length] ?? "open", { username })]);
}

/**
 * Somebody new takes the handle of a person whom the log knows by it, and writes to us. `list`: once the log knows whose
 * handle it is now, they are imported by it too.
 */
export async function handOver(house: House, { whom, list }: { whom: number; list: boolean }): Promise<void> {
  const { people, network, heirs, append } = house;
  const id = personId(whom % people.length);
  const user = network.people.get(id);
  if (user === undefined) return;
  const handle = user.username.toLowerCase();
  const holder = await knownHolder(house, handle);
  const heir = heirs.get(handle);
  if (heir !== undefined) {
    if (list && holder?.id === heir) await append([rowOf("open", { username: handle })]);
    return;
  }
  if (holder?.id !== id) return;
  await house.list(["open"]);
  const taker = personId(people.length - 1);
  network.people.set(id, { ...user, username: `${user.username}_2` });
  network.people.set(taker, person(taker, { username: handle }));
  heirs.set(handle, taker);
  network.receive(taker, "hello");
}

/** Who has the handle, as far as the log tells. */
async function knownHolder(house: House, username: string): Promise<Contact | undefined> {
  return findContact(await knownPeople(house), { username });
}

async function knownPeople({ store }: House): Promise<Contacts> {
  const state = contacts.initial();
  for await (const batch of store.readFolded({ types: contacts.types })) {
    for (const event of batch) contacts.evolve(state, event);
  }
  return state;
}
