import type { DatabaseSync } from "node:sqlite";
import { canonicalText, createLink } from "../chain.ts";
import { type AppendRequest, EVENT_FIELDS } from "./messages.ts";
import type { StreamTail, Tail } from "./tail.ts";

/** Inserts an append's events behind the head and moves the head; inside of a transaction. */
export type InsertEvents = (
  append: AppendRequest,
  stream: StreamTail,
  timeMs: number,
  /** Gets the new events' hashes, where somebody wants them. */
  hashes: Uint8Array[] | undefined,
) => void;

export function createInsertEvents(db: DatabaseSync, tail: Tail): InsertEvents {
  const insert = db.prepare(
    `INSERT INTO events (position, stream, version, type, id, time, data, meta, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const link = createLink();

  return ({ stream: name, fields, start, count }, stream, timeMs, hashes) => {
    const { head } = tail;
    if (stream.id === 0) stream.id = tail.createStream(name);
    const end = start + count * EVENT_FIELDS;
    for (let at = start; at < end; at += EVENT_FIELDS) {
      const id = fields[at]!;
      const type = fields[at + 1]!;
      const data = fields[at + 2]!;
      const meta = fields[at + 3]!;
      const position = head.position + 1;
      const version = stream.version + 1;
      const hash = link(head.hash, canonicalText(position, name, version, id, type, timeMs, data, meta));
      insert.run(position, stream.id, version, tail.typeId(type), id, timeMs, data, meta, hash);
      hashes?.push(hash);
      head.position = position;
      head.hash = hash;
      stream.version = version;
    }
    head.timeMs = timeMs;
  };
}
