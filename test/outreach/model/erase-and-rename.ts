import { findContact, isHeldBy } from "../../../projections/contact-identity.ts";
import type { Contact, Contacts } from "../../../projections/contact-state.ts";
import { contacts } from "../../../projections/contacts.ts";
import { historyOfRecipient } from "../../../src/history/history-of-recipient-link-or-event.ts";
import { findNamed } from "../../../src/recipients/resolve-recipient.ts";
import { findEncrypted } from "../../../src/privacy/forget-person-or-address.ts";
import { person } from "../../harness/in-process/social-network.ts";
import { RULES } from "../../harness/in-process/simulated-outreach-processes.ts";
import { listening, MINUTE_MS, trigger } from "./perform-acts.ts";
import type { House } from "./simulated-world.ts";
import { personId, rowOf } from "./initial-state.ts";

/** Simulates that an operator erases the person, as `reachlog forget` does. */
export async function forget(house: House, id: string): Promise<void> {
  const { log, store, append, forgotten, forgottenHandles, takenForTheirs, clockwork, witness } = house;
  const { position: to } = await store.head();
  const history = await historyOfRecipient({ store, to, onProgress: () => {} }, (state) => findNamed(state, id));
  if (history === undefined) return;
  const known = await knownPeople(house);
  const contact = findNamed(known, id);
  const handle = contact?.username?.toLowerCase();
  if (handle !== undefined && !forgottenHandles.has(handle)) forgottenHandles.set(handle, clockwork.now());
  const notes = witness.notes();
  for (const position of history.positions) takenForTheirs.add(notes[position - 1]?.data ?? {});
  const person = await findEncrypted(log, {
    positions: history.positions,
    isHeld: (one) => isHeldBy(known, one, contact),
    signal: new AbortController().signal,
  });
  const { own, keys, spared } = person;
  const data = { hashes: own.flatMap((name) => RULES.hashes(name)), keys: [...keys], spared: [...spared] };
  forgotten.add(id);
  await append([{ type: "PersonForgotten", data }]);
  await log.keyring.destroy(data.keys, data.spared);
  await log.keyring.replaceStateKey();
}

/** Simulates that a person takes another handle. With `list`, an operator then imports the new handle. */
export async function rename(house: House, { who, list }: { who: number; list: boolean }): Promise<void> {
  const { people, network, append } = house;
  const id = personId(who % people.length);
  const user = network.people.get(id);
  // If the log knows a person only by a handle, it would lose track of the person after a change of the handle. So such
  // people keep theirs.
  if (user === undefined || people[who % people.length] === "by_handle") return;
  const known = await knownHolder(house, user.username);
  if (known !== undefined && known.id !== id) return;
  const username = `${user.username}_2`;
  network.people.set(id, { ...user, username });
  if (list) await append([rowOf(people[who % people.length] ?? "open", { username })]);
}

/** Circumstances in which a person's handle passes to a new person. */
interface HandOver {
  readonly who: number;
  /**
   * True if an operator imports the new holder by the handle alone, after the log has learned that the handle is
   * theirs.
   */
  readonly list: boolean;
  /**
   * True if, after the handle has passed to a new holder, an operator erases the previous holder and imports the new
   * holder a second time. The erasure must not affect either import of the new holder.
   */
  readonly isForgotten: boolean;
}

/** Simulates that a new person takes a handle by which the log knows another person, and writes to the account. */
export async function handOver(house: House, { who, list, isForgotten }: HandOver): Promise<void> {
  const { people, network, heirs, everHeirs, append, clockwork } = house;
  const id = personId(who % people.length);
  const user = network.people.get(id);
  const handle = user?.username.toLowerCase() ?? "";
  if (user === undefined || (await knownHolder(house, handle))?.id !== id) return;
  await house.list(["open"]);
  const heir = personId(people.length - 1);
  network.people.set(id, { ...user, username: `${user.username}_2` });
  network.people.set(heir, person(heir, { username: handle }));
  heirs.set(handle, heir);
  everHeirs.add(heir);
  network.receive(heir, "hello");
  if (list) {
    trigger(await listening(house, 0), true);
    await clockwork.pass(MINUTE_MS);
  }
  const isListed = list && (await knownHolder(house, handle))?.id === heir;
  if (isListed) await append([rowOf("open", { username: handle })]);
  if (!isForgotten) return;
  await forget(house, id);
  if (isListed) await append([rowOf("open", { username: handle })]);
}

/** Returns the recipient who has this handle, according to the log. */
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
