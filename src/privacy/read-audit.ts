import type { DataOf, Recorded } from "../../events/catalog.ts";
import type { Recipient } from "../../events/outreach.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";

/** What a caller is about to see, without any of it. */
export type PersonalRead = DataOf<"PersonalDataRead">;

/** What only the answer tells: the recipient that it is about, and how many records it holds. */
export type Disclosed = Pick<PersonalRead, "recipient" | "records">;

/** What a read about one recipient discloses. Undefined, or without a name: it names no single one. */
export function discloseRecipient(recipient: Recipient | undefined): Disclosed {
  return recipient?.id === undefined && recipient?.username === undefined ? {} : { recipient };
}

/** What one event tells of: the recipient that it is about. */
export function discloseEvent({ data }: Pick<Recorded, "data">): Disclosed {
  return discloseRecipient("recipient" in data ? data.recipient : undefined);
}

export type Append = (stream: string, newEvents: readonly NewEvent[], metadata: EventMetadata) => Promise<unknown>;

/** Records one read. Throws what `append` throws: then the caller must see nothing. */
export function appendRead(append: Append, read: PersonalRead, metadata: EventMetadata): Promise<unknown> {
  return append(STREAMS.access, [{ type: "PersonalDataRead", data: read }], metadata);
}
