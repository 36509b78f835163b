import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { SocialError, type SentDm, type SocialUser } from "../networks/network.ts";
import { findContact } from "../../projections/contacts.ts";
import { outreachState, type RunContext } from "./context.ts";
import type { Patience } from "./patience.ts";

/** Messages read of a conversation, more only where it has more: each costs money. */
const LOOKED_AT = [5, 25, 100];

/** The network shows messages of the last 30 days: what was sent before the restore is not to be seen after that. */
const SHOWN_MS = 30 * 24 * 3_600_000;

/**
 * When the log was restored from a backup, or a loss of it was accepted (ms since the epoch); undefined if neither ever
 * was. Messages that were sent after the backup are not in it.
 */
export async function restoredAt(store: EventStore<Event>): Promise<number | undefined> {
  const { position: head } = await store.head();
  const begun = firstOfEpoch(store, head);
  const times: number[] = [];
  if (begun > 1) for await (const { time } of store.read({ from: begun, to: begun })) times.push(Date.parse(time));
  for await (const { time } of store.read({ types: ["LogLossAccepted"], backwards: true, limit: 1 })) {
    times.push(Date.parse(time));
  }
  return times.length === 0 ? undefined : Math.max(...times);
}

/** The first position that was appended in the present epoch: epochs follow each other along the log. */
function firstOfEpoch(store: EventStore<Event>, head: number): number {
  let [low, high] = [1, head];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (store.cursor(middle).epoch === store.epoch) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Whether a person of whom the log tells no message has one of ours all the same, as after a restore; true also where
 * that cannot be said, since nobody is to get a second one. Throws the network's SocialError, but one about this person.
 */
export async function mayHaveOurs(
  run: RunContext,
  patience: Patience,
  user: SocialUser,
  restored: number | undefined,
): Promise<boolean | "unknown"> {
  if (restored === undefined || run.clock() - restored > SHOWN_MS) return false;
  const { contacts, account } = outreachState(run);
  if (findContact(contacts, user)?.attempted_at !== undefined) return false;
  const { network, credentials, log } = run;
  try {
    for (const limit of LOOKED_AT) {
      const read = (): Promise<readonly SentDm[]> =>
        credentials.use((token) => network.conversation(token, user.id, limit));
      const messages = await patience(read);
      if (messages.some(({ senderId }) => senderId === account.user?.id)) return true;
      if (messages.length < limit) return false;
    }
  } catch (fault) {
    if (!(fault instanceof SocialError) || fault.kind !== "rejected") throw fault;
    log.warn("a conversation cannot be read, so its person is passed over", { detail: fault.message });
  }
  return "unknown";
}
