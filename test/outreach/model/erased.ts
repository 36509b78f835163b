import type { Recipient } from "../../../events/outreach.ts";
import { markOfErased } from "../../../events/encryption.ts";
import { violated } from "./books.ts";
import type { House } from "./house.ts";

/** Of who was erased the log holds nothing that it knew as theirs, and of all others all that it held. */
export async function checkErased(house: House): Promise<void> {
  const { store, witness, forgotten, forgottenHandles, takenForTheirs } = house;
  if (forgotten.size === 0) return;
  for await (const event of store.read({ from: 1 })) {
    const { position, type, data } = event;
    const was = witness.asAppended(event).data;
    const about = witness.about(position);
    // Also of the erased the log says what becomes of their attempts.
    if (!("recipient" in data) || !("recipient" in was) || about === undefined || isErased(was.recipient)) continue;
    const told = { position, type, about, recipient: data.recipient };
    const { id, username = "" } = was.recipient;
    // A handle alone that an erased person had may be another's, unless the log could tell when they were erased.
    const isLater = witness.appendedAt(position) >= (forgottenHandles.get(username.toLowerCase()) ?? Infinity);
    const mayBeTheirs = id === undefined && (isLater || takenForTheirs.has(was));
    if (isErased(data.recipient) && !forgotten.has(about) && !mayBeTheirs) violated("another person was erased", told);
    // A row by a handle that the log never saw beside the id may be another person's.
    const isKnown = id !== undefined;
    if (isKnown && !isErased(data.recipient) && forgotten.has(about)) violated("a person was not erased", told);
  }
}

function isErased({ id = "" }: Recipient): boolean {
  return markOfErased(id) !== undefined;
}
