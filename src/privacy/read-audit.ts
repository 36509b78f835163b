import { createHash } from "node:crypto";
import type { DataOf, Recorded } from "../../events/catalog.ts";
import type { Recipient } from "../../events/outreach.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import type { Clock } from "../platform/clock.ts";

/** What a caller is about to see, without any of it. */
export type PersonalRead = DataOf<"PersonalDataRead">;

/** What only the answer tells: the recipient that it is about, and how many records it holds. */
export type Disclosed = Pick<PersonalRead, "recipient" | "records">;

/** What a read about one recipient discloses; undefined: it is about no single one. No name is left of some who lost theirs. */
export function discloseRecipient(read: Recipient | undefined): Disclosed {
  return read?.id === undefined && read?.username === undefined ? {} : { recipient: read };
}

/** What one event tells of: the recipient that it is about. */
export function discloseEvent({ data }: Pick<Recorded, "data">): Disclosed {
  return discloseRecipient("recipient" in data ? data.recipient : undefined);
}

/** An open page of the console asks for itself whenever the log grows: that is one read in so much time. */
export const SAME_READ_MS = 15 * 60_000;

/** Reads that are remembered: with 44 characters each they stay below 2 MiB. Past that, one may be recorded twice. */
const REMEMBERED_MAX = 10_000;

/** Appends events to a stream. */
type Append = (stream: string, newEvents: readonly NewEvent[], metadata: EventMetadata) => Promise<unknown>;

/** Records one read. Throws what `append` throws: then the caller must see nothing. */
export function appendRead(append: Append, read: PersonalRead, metadata: EventMetadata): Promise<unknown> {
  return append(STREAMS.access, [{ type: "PersonalDataRead", data: read }], metadata);
}

/**
 * Records reads for the requests of one instance. The same request of the same caller is recorded once in each
 * {@link SAME_READ_MS} of the clock, an export each time.
 */
export function createReadAudit(append: Append, clock: Clock) {
  let interval = -1;
  let recorded = new Map<string, Promise<unknown>>();

  return {
    /** Resolves once the read is durable. `request`: tells one read from another. Throws what `append` throws. */
    async record(read: PersonalRead, metadata: EventMetadata, request: string): Promise<void> {
      const now = Math.floor(clock() / SAME_READ_MS);
      if (now !== interval || recorded.size >= REMEMBERED_MAX) recorded = new Map();
      interval = now;
      // A hash, since the request may name a recipient.
      const hash = createHash("sha256")
        .update(JSON.stringify([metadata.caller, request]))
        .digest("base64");
      const known = read.resource === "export" ? undefined : recorded.get(hash);
      const appended = known ?? appendRead(append, read, metadata);
      const own = recorded;
      own.set(hash, appended);
      try {
        await appended;
      } catch (fault) {
        own.delete(hash);
        throw fault;
      }
    },
  };
}
