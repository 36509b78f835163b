import type { Recipient } from "../../../events/outreach.ts";
import { markOfErased } from "../../../events/declare-personal-members.ts";
import { violated } from "./log-summary.ts";
import type { House } from "./simulated-world.ts";

/** Checks that events about erased people no longer name them, and that all other events still name their people. */
export async function checkErased(house: House): Promise<void> {
  const { store, witness, forgotten, forgottenHandles, takenForTheirs } = house;
  if (forgotten.size === 0) return;
  for await (const event of store.read({ from: 1 })) {
    const { position, type, data } = event;
    const was = witness.asAppended(event).data;
    const about = witness.about(position);
    // Skips events that name no recipient, and outcomes that were appended after the erasure, which are written without
    // a name.
    if (!("recipient" in data) || !("recipient" in was) || about === undefined || isErased(was.recipient)) continue;
    const told = { position, type, about, recipient: data.recipient };
    const { id, username = "" } = was.recipient;
    // An event with a handle alone may be erased although it means another person: if it came after the handle's
    // erasure, or if the log could not tell the two apart.
    const isLater = witness.appendedAt(position) >= (forgottenHandles.get(username.toLowerCase()) ?? Infinity);
    const mayBeTheirs = id === undefined && (isLater || takenForTheirs.has(was));
    if (isErased(data.recipient) && !forgotten.has(about) && !mayBeTheirs) violated("another person was erased", told);
    // Only events with an id must be erased: an event with a handle alone may mean another person.
    const isKnown = id !== undefined;
    if (isKnown && !isErased(data.recipient) && forgotten.has(about)) violated("a person was not erased", told);
  }
}

function isErased({ id = "" }: Recipient): boolean {
  return markOfErased(id) !== undefined;
}
