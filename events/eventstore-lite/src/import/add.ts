import type { DatabaseSync } from "node:sqlite";
import { canonicalText, createLink } from "../chain.ts";
import { ImportRefused } from "../errors.ts";
import type { NewEvent, Recorded } from "../store.ts";
import { createTail } from "../writer/tail.ts";
import { checkFields } from "./fields.ts";

/** Appends one recorded event as it is. Throws {@link ImportRefused} unless it follows on the one before it. */
export type Add = (event: Recorded<NewEvent>) => void;

export function createAdd(db: DatabaseSync, eventBytesMax: number): Add {
  const insert = db.prepare(
    `INSERT INTO events (position, stream, version, type, id, time, data, meta, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const link = createLink();
  const tail = createTail(db);
  const { head } = tail;
  tail.refresh();

  return (event) => {
    const position = head.position + 1;
    const refuse = (reason: string): never => {
      throw new ImportRefused(position, reason);
    };
    if (event.position !== position) refuse(misplaced(event.position, position));
    const { timeMs, data, meta } = checkFields(event, eventBytesMax, refuse);
    if (timeMs < head.timeMs) refuse("its time is before that of its predecessor");
    const { id, type } = event;
    const stream = tail.stream(event.stream);
    const version = stream.version + 1;
    if (event.version !== version) refuse(`its version is ${event.version}, the next one of its stream is ${version}`);
    const hash = link(head.hash, canonicalText(position, event.stream, version, id, type, timeMs, data, meta));
    // The last check, since it holds for one text only: that of the writer, byte by byte.
    if (hash.toString("hex") !== event.hash) refuse("the hash does not follow from the event and its predecessor");

    if (stream.id === 0) stream.id = tail.createStream(event.stream);
    insert.run(position, stream.id, version, tail.typeId(type), id, timeMs, data, meta, hash);
    stream.version = version;
    head.position = position;
    head.timeMs = timeMs;
    head.hash = hash;
  };
}

function misplaced(found: unknown, wanted: number): string {
  if (typeof found !== "number" || !Number.isSafeInteger(found)) return "the event here has no position";
  if (found > wanted) return `it is missing: the event here is of position ${found}`;
  return `the event here is of position ${found}, which was before`;
}
