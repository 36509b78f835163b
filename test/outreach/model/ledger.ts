import { dayIn } from "../../../src/outreach/day.ts";
import { createBooks, violated, type Books } from "./books.ts";
import type { House } from "./house.ts";
import { enter } from "./rules.ts";
import type { Ask } from "./witness.ts";

/**
 * The rules of the protocol, kept apart from the code that follows them: reads the log and the network's own record side
 * by side, and throws a Violation.
 */
export interface Ledger {
  readonly books: Books;
  check(): Promise<void>;
}

export function createLedger(house: House): Ledger {
  const books = createBooks();
  let position = 0;
  let asksSeen = 0;

  /** The requests that were made when the log ended at `head`. */
  const judgeUpTo = (head: number): void => {
    const { asks } = house.witness;
    for (let ask = asks[asksSeen]; ask !== undefined && ask.head <= head; ask = asks[asksSeen]) {
      asksSeen += 1;
      judge(books, ask, house);
    }
  };

  return {
    books,
    async check() {
      for (const event of await house.events(position + 1)) {
        judgeUpTo(position);
        enter(books, event, house);
        position = event.position;
      }
      judgeUpTo(position);
      checkAccepted(books, house);
    },
  };
}

/** A request to send against what the log held when it was made. */
function judge({ latest, suppressed }: Books, ask: Ask, { witness }: House): void {
  const attempt = latest.get(ask.recipientId) ?? violated("a request without an intent", ask);
  attempt.asks.push(ask);
  if (attempt.settledAt !== undefined) violated("a request for an attempt that is settled", ask);
  if (ask.knewSuppressed) violated("a request for somebody known to be suppressed", ask);
  const suppressedAt = suppressed.get(ask.recipientId);
  if (suppressedAt !== undefined && witness.appendedAt(suppressedAt) < ask.at) {
    violated("a request after a suppression", ask);
  }
  if (dayIn(attempt.timezone, ask.ownTime) !== attempt.day) violated("a request on another day", ask);
}

function checkAccepted({ allowed }: Books, { network }: House): void {
  const taken = new Map<string, number>();
  for (const { recipientId } of network.accepted) {
    const count = (taken.get(recipientId) ?? 0) + 1;
    taken.set(recipientId, count);
    if (count > (allowed.get(recipientId) ?? 1)) violated("a message too many", { recipientId, count });
  }
}
