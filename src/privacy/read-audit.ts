import type { DataOf, Recorded } from "../../events/catalog.ts";
import type { Recipient } from "../../events/outreach.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";

/** Describes the personal data that a caller is about to see, and contains none of it. */
export type PersonalRead = DataOf<"PersonalDataRead">;

/** The facts that are known only from the answer: the recipient that it is about, and its number of records. */
export type Disclosed = Pick<PersonalRead, "recipient" | "records">;

/** Discloses the recipient of a read; nothing if the recipient is undefined or has no name. */
export function discloseRecipient(recipient: Recipient | undefined): Disclosed {
  return recipient?.id === undefined && recipient?.username === undefined ? {} : { recipient };
}

/** Discloses the recipient that an event is about. */
export function discloseEvent({ data }: Pick<Recorded, "data">): Disclosed {
  return discloseRecipient("recipient" in data ? data.recipient : undefined);
}

export type Append = (stream: string, newEvents: readonly NewEvent[], metadata: EventMetadata) => Promise<unknown>;

/** Records one read. Throws what `append` throws; the caller must see nothing then. */
export function appendRead(append: Append, read: PersonalRead, metadata: EventMetadata): Promise<unknown> {
  return append(STREAMS.access, [{ type: "PersonalDataRead", data: read }], metadata);
}
