import type { DataOf, Recorded } from "../../events/event-types-and-codec.ts";
import type { Recipient } from "../../events/outreach.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";

/** Describes the personal data that a caller is about to see, and contains none of it. */
export type PersonalRead = DataOf<"PersonalDataRead">;

/**
 * Facts about a read of personal data that are known only from its answer: the recipient, and the number of records.
 */
export interface Disclosed {
  readonly recipient?: Recipient;
  readonly records?: number;
}

/** Names the recipient of a read for its record; empty if the recipient is undefined or has no name. */
export function discloseRecipient(recipient: Recipient | undefined): Disclosed {
  return recipient?.id === undefined && recipient?.username === undefined ? {} : { recipient };
}

/** Names the recipient of an event that a caller reads, for the record of that read. */
export function discloseEvent({ data }: { readonly data: Recorded["data"] }): Disclosed {
  return discloseRecipient("recipient" in data ? data.recipient : undefined);
}

export type Append = (stream: string, newEvents: readonly NewEvent[], metadata: EventMetadata) => Promise<unknown>;

/**
 * Records in the log that a caller reads personal data. Throws what `append` throws; the caller must see no data then.
 */
export function appendRead(append: Append, read: PersonalRead, metadata: EventMetadata): Promise<unknown> {
  return append(STREAMS.access, [{ type: "PersonalDataRead", data: read }], metadata);
}
