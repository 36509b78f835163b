import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** The bytes of one field of an event in a database file. */
export interface ByteRange {
  readonly field: string;
  readonly start: number;
  readonly bytes: number;
}

interface Page {
  readonly start: number;
  readonly bytes: number;
}

// Size of the header of a leaf page in SQLite's file format: https://sqlite.org/fileformat2.html#b_tree_pages
const LEAF_HEADER_BYTES = 8;
const CELL_COUNT_AT = 3;
/** First byte of a leaf page of a table in SQLite's file format. */
const TABLE_LEAF = 13;
/** Page size minus the largest row that fits in one page; a longer row continues in other pages. */
const BYTES_BESIDE_LOCAL_PAYLOAD = 35;
const VARINT_BYTES_MAX = 9;

/**
 * Finds the fields of all events in the file of a closed log, and the names of their streams and types. Follows the
 * cells that the pages refer to, because remains of moved rows are not part of the log.
 */
export function findEventBytes(file: string): ByteRange[] {
  const bytes = readFileSync(file);
  const db = new DatabaseSync(file, { readOnly: true });
  const ranges = ["events", "streams", "types"].flatMap((table) => {
    const columns = db.prepare("SELECT name FROM pragma_table_info(?)").all(table) as unknown as { name: string }[];
    const fields = columns.map(({ name }) => (table === "events" ? name : `${table} ${name}`));
    return leavesOf(db, table).flatMap((page) => findRows(bytes, page, fields));
  });
  db.close();
  return ranges;
}

/**
 * Finds the bytes of all entries in the indexes by which the log finds events; `field` of a range is the index's name.
 */
export function findIndexBytes(file: string): ByteRange[] {
  const bytes = readFileSync(file);
  const db = new DatabaseSync(file, { readOnly: true });
  const indexes = db.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ('events', 'streams', 'types')",
  );
  const ranges = (indexes.all() as unknown as { name: string }[]).flatMap(({ name }) => {
    const columns = db
      .prepare("SELECT name FROM pragma_index_xinfo(?)")
      .all(name)
      .map(() => name);
    return leavesOf(db, name).flatMap((page) => findRows(bytes, page, columns));
  });
  db.close();
  return ranges;
}

function leavesOf(db: DatabaseSync, name: string): Page[] {
  const pages = db.prepare(
    "SELECT pgoffset AS start, pgsize AS bytes FROM dbstat WHERE name = ? AND pagetype = 'leaf'",
  );
  return pages.all(name) as unknown as Page[];
}

function findRows(bytes: Buffer, page: Page, fields: readonly string[]): ByteRange[] {
  const cells = Array.from({ length: bytes.readUInt16BE(page.start + CELL_COUNT_AT) }, (_, index) => {
    return page.start + bytes.readUInt16BE(page.start + LEAF_HEADER_BYTES + 2 * index);
  });
  return cells.flatMap((cell) => findFields(bytes, cell, page, fields));
}

/**
 * Finds the columns of a row in SQLite's file format. A cell holds the record's size, the row's number (only in a
 * table) and the record: the types of all columns, then their contents.
 */
function findFields(bytes: Buffer, cell: number, page: Page, fields: readonly string[]): ByteRange[] {
  const payload = readVarint(bytes, cell);
  const header = bytes[page.start] === TABLE_LEAF ? readVarint(bytes, payload.end).end : payload.end;
  if (payload.value > page.bytes - BYTES_BESIDE_LOCAL_PAYLOAD) return [];
  const headerSize = readVarint(bytes, header);
  let typeAt = headerSize.end;
  let start = header + headerSize.value;
  const ranges = fields.map((field) => {
    const type = readVarint(bytes, typeAt);
    const range = { field, start, bytes: contentBytes(type.value) };
    typeAt = type.end;
    start += range.bytes;
    return range;
  });
  // Fields without bytes are left out: the row's number is in the cell, and the values 0 and 1 are in their type.
  return ranges.filter((range) => range.bytes > 0);
}

function readVarint(bytes: Buffer, at: number): { value: number; end: number } {
  let value = 0;
  for (let end = at; end < at + VARINT_BYTES_MAX; end += 1) {
    const byte = bytes[end]!;
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return { value, end: end + 1 };
  }
  throw new Error(`no number of this size is in such a log: at ${at}`);
}

/**
 * Returns the length of a column's content for its SQLite serial type. Source:
 * https://sqlite.org/fileformat2.html#record_format.
 */
function contentBytes(serialType: number): number {
  if (serialType >= 12) return Math.floor((serialType - 12) / 2);
  return [0, 1, 2, 3, 4, 6, 8, 8, 0, 0][serialType]!;
}
