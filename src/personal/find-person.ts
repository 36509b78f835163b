import type { Recipient } from "../../events/outreach.ts";
import { SEALED_TYPES } from "../../events/catalog.ts";
import { boxOf } from "../../events/sealed-data.ts";
import type { SealedLog } from "./sealed-log.ts";

/** What there is to delete of somebody. */
export interface Found {
  /** Refs of the keys that their data is sealed with. */
  readonly keys: ReadonlySet<string>;
  /** Events that tell of them. */
  readonly events: number;
  /** Of those, the ones from before sealing: they cannot be erased from the log. */
  readonly open: number;
}

export interface Person extends Found {
  /** Everything they were ever called. */
  readonly names: readonly Recipient[];
}

/** What the events at these positions, which all are of one person, are sealed with. */
export async function findSealed(log: SealedLog, positions: readonly number[]): Promise<Person> {
  const keys = new Set<string>();
  const names = new Map<string, Recipient>();
  let open = 0;
  for (const position of positions) {
    for await (const event of log.readStored({ from: position, to: position })) {
      const { recipient } = log.open(event).data as { recipient?: Recipient };
      if (recipient !== undefined) names.set(JSON.stringify(recipient).toLowerCase(), recipient);
      const box = boxOf(event.data);
      if (box !== undefined) keys.add(log.keyring.refOf(box));
      else if (SEALED_TYPES.some((type) => type === event.type)) open++;
    }
  }
  // Also what is sealed beside their own events, such as how far a source was read, or comes later.
  for (const name of names.values()) for (const ref of log.keyring.refsOf(name)) keys.add(ref);
  return { keys, names: [...names.values()], events: positions.length, open };
}
