import type { DatabaseSync } from "node:sqlite";
import { createCheckImported } from "../../check-imported-events.ts";
import type { NewEvent, Recorded } from "../../event-store-interface.ts";
import { createTail } from "../writer/log-tail.ts";

/**
 * Adds one recorded event to a new log with its position, time and hash. Throws {@link ImportRefused} unless it follows
 * the one before it.
 */
export type Add = (event: Recorded<NewEvent>) => void;

/** Creates the function that adds recorded events to a new log. */
export function createAdd(db: DatabaseSync, eventBytesMax: number): Add {
  const insert = db.prepare(
    `INSERT INTO events (position, stream, version, type, id, time, data, meta, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const check = createCheckImported(eventBytesMax);
  const tail = createTail(db);
  tail.refresh();

  return (event) => {
    const { timeMs, data, meta, hash } = check(event, (name) => tail.stream(name).version);
    const { position, version, id, type } = event;
    const stream = tail.stream(event.stream);
    if (stream.id === 0) stream.id = tail.createStream(event.stream);
    insert.run(position, stream.id, version, tail.typeId(type), id, timeMs, data, meta, hash);
    stream.version = version;
  };
}
