import { StoreClosed } from "../errors.ts";
import type { EventStore, Head, Verification } from "../event-store-interface.ts";
import { archiveEvents, type ArchiverStore } from "./move-events-into-segments.ts";
import { type ArchiveTable, createCatalogue } from "./catalogue.ts";
import { createOpenSegments } from "./segment-cache.ts";
import { type ArchiveReader, createArchiveReader } from "./read-segments-and-database.ts";
import type { SegmentReader, SegmentStorage } from "./segment-storage.ts";
import { verifyArchive } from "./verify-archive.ts";

/** Methods of an event store whose work is done by its archive. */
export interface ArchiveMethods {
  readonly archive: EventStore["archive"];
  readonly archived: EventStore["archived"];
  readonly verify: EventStore["verify"];
}

/** The archive of one log: reading it, moving events into it, and proving it together with what is in the database. */
export interface LogArchive {
  readonly reader: ArchiveReader;
  /**
   * Returns the methods of an event store that its archive implements: moving events into segments, listing the
   * segments, and verifying the whole log.
   */
  forStore(store: ArchiverStore & { readonly verifyLive: VerifyLive }): ArchiveMethods;
  /** Ends running verifications with {@link StoreClosed}. */
  close(): void;
}

type LiveOptions = NonNullable<Parameters<EventStore["verify"]>[0]> & { readonly head: Head };

/** Verifies the events that the database holds, up to `head`; those in segments are verified separately. */
export type VerifyLive = (options: LiveOptions) => Promise<Verification>;

/** Opens the archive for reading only. */
export function openArchive(table: ArchiveTable, storage: SegmentReader): ArchiveReader {
  return createArchiveReader(createCatalogue(table), table, createOpenSegments(storage));
}

export function createLogArchive(table: ArchiveTable, storage: SegmentStorage): LogArchive {
  const reader = openArchive(table, storage);
  const { catalogue, open } = reader;
  const closing = new AbortController();

  async function verifyOnce(
    { id, verifyLive }: { readonly id: string; readonly verifyLive: VerifyLive },
    { head, from, to, threads, onProgress }: Required<LiveOptions>,
  ): Promise<Verification> {
    const { end } = catalogue;
    const last = Math.min(to, end, head.position);
    let checked = 0;
    if (from <= last) {
      const onChecked = (events: number): void => onProgress((checked += events));
      const range = { log: id, from, to: last, threads, onChecked, signal: closing.signal };
      const fault = await verifyArchive(catalogue, table, storage, range);
      if (fault !== undefined) return { ok: false, checked: Math.max(0, fault.position - from), head, fault };
    }
    const onLive = (events: number): void => onProgress(checked + events);
    const live = await verifyLive({ head, from: Math.max(from, end + 1), to, threads, onProgress: onLive });
    return { ...live, checked: checked + live.checked };
  }

  return {
    reader,
    forStore: (store) => ({
      archive: (options) => archiveEvents(store, table, catalogue, storage, open, options),
      async archived() {
        await catalogue.refresh();
        return catalogue.entries().map(({ name, bytes, first, last }) => ({ name, bytes, first, last }));
      },
      async verify({ from = 1, to = Infinity, threads = Infinity, onProgress = () => {} } = {}) {
        // If the verification has to be repeated, it still ends where the log ended when this call began.
        const head = await store.head();
        for (;;) {
          await catalogue.refresh();
          const { end } = catalogue;
          const verification = await verifyOnce(store, { head, from: Math.max(1, from), to, threads, onProgress });
          await catalogue.refresh();
          // An event that moved into the archive during the check was missing from the database, and looked like a
          // fault. So a fault counts only if no event moved; otherwise the check is repeated.
          if (verification.ok || catalogue.end === end) return verification;
        }
      },
    }),
    close: () => closing.abort(new StoreClosed()),
  };
}
