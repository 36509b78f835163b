// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { findContact } from "../../projections/contact-identity.ts";
import { toRecipient } from "../../projections/contact-state.ts";
import { contacts } from "../../projections/contacts.ts";
import { describeCellNote } from "../../src/recipients/file/cell-notes.ts";
import { parseLinks, parseRecipients, parseSuppressions } from "../../src/recipients/parse-imported-lists.ts";
import { ServiceError } from "../../src/platform/service-error.ts";
import { BY_HAND } from "../fixtures/lists/unusual-lists-and-results.ts";
import type { List, Meant } from "../fixtures/lists/list-with-expected-import.ts";
import { PROGRAMS, write, type Program } from "../fixtures/lists/table-formats-by-program.ts";
import { TABLES, type TableOfPeople } from "../fixtures/lists/recipient-lists-and-expected-imports.ts";
import { given } from "../harness/in-process/number-and-fold-events.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

/**
 * Builds the file that a program writes for the table, and the expected result of its import. Text in Windows-1252 can
 * be read only if it is ASCII, because no byte-order mark identifies it.
 */
function exported(program: Program, table: TableOfPeople): List {
  const name = `${table.name}, by ${program.name}`;
  const { dates, firstLine, encoding, lastCells } = program;
  const list = { name, bytes: write(program, table.rows), format: "csv", ...(dates && { dates }) } as const;
  if (encoding === "windows-1252" && table.isPlain !== true)
    return { ...list, people: [], refused: [], notes: [], fault: "perhaps Windows-1252" };
  const refused = (table.refused ?? []).map(
    ([row, reason]) => [row + (firstLine === undefined ? 0 : 1), reason] as const,
  );
  const missing = lastCells === "missing" ? ["the row ends before"] : [];
  const isRefused = (at: number): boolean => (table.refused ?? []).some(([row]) => row === at + 1);
  const endsBlank = table.rows.some((row, at) => row.at(-1) === "" && !isRefused(at));
  return { ...list, people: table.people, refused, notes: [...(table.notes ?? []), ...(endsBlank ? missing : [])] };
}

const LISTS = [...PROGRAMS.flatMap((program) => TABLES.map((table) => exported(program, table))), ...BY_HAND];

function readList({ bytes, format, dates }: List) {
  try {
    return parseRecipients(bytes, format, { now: NOW, dates });
  } catch (fault) {
    if (fault instanceof ServiceError && fault.kind === "invalid") return fault.message;
    throw fault;
  }
}

const toMeant = ({ fields, blank, ...rest }: Meant) => ({
  ...rest,
  fields: { ...fields },
  blank: [...(blank ?? [])].sort(),
});

test("at least 200 lists have different names", () => {
  expect(new Set(LISTS.map(({ name }) => name)).size).toBe(LISTS.length);
  expect(LISTS.length).toBeGreaterThanOrEqual(200);
});

describe("an exported list is read as meant, or refused with the reason", () => {
  test.each(LISTS.map((list) => [list.name, list] as const))("%s", (_, list) => {
    const read = readList(list);
    if (list.fault !== undefined || typeof read === "string") {
      expect(read).toEqual(expect.stringContaining(list.fault ?? "(a list)"));
      return;
    }
    expect(read.rows.map(({ recipient }) => toMeant(recipient))).toEqual(list.people.map(toMeant));
    expect(read.refused.map(({ line, reason }) => [line, reason])).toEqual(
      list.refused.map(([line, reason]) => [line, expect.stringContaining(reason)]),
    );
    const said = read.notes.first.map(describeCellNote);
    for (const note of list.notes) expect(said).toContainEqual(expect.stringContaining(note));
    if (list.notes.length === 0) expect(said).toEqual([]);
  });
});

describe("lists of suppressions and links", () => {
  const SUPPRESSIONS = [
    ["Twitter URL", "X ID", "reason", "Suppressed at"],
    ["https://x.com/ann_b", "null", "opt out", { day: "2026-03-02" }],
    ["'@bea", "'1786543210987654321", "'=asked; by phone", { day: "2026-04-25" }],
    ["none", "", "x", ""],
  ];
  const LINKS = [
    ["Slug", "Destination URL", "Clicks", "note"],
    ["one", "https://shop.example/?a=1&b=2;c", "7", ""],
    ["two", "https://shop.example/2", "", "a, b"],
  ];

  test.each(PROGRAMS.map((program) => [program.name, program] as const))("from %s are read as meant", (_, program) => {
    const options = { now: NOW, dates: program.dates };
    const { rows, refused, notes } = parseSuppressions(write(program, SUPPRESSIONS), "csv", options, "");
    expect(rows.map(({ suppression }) => suppression)).toEqual([
      { username: "ann_b", reason: "opt_out", suppressed_at: "2026-03-02" },
      {
        username: "bea",
        id: "1786543210987654321",
        reason: "list",
        reason_text: "=asked; by phone",
        suppressed_at: "2026-04-25",
      },
    ]);
    expect(refused).toMatchObject([
      { value: "none", reason: expect.stringMatching(/^neither a username, an id nor a/) },
    ]);
    expect(notes.first.map(({ note, value }) => [note, value])).toContainEqual(["read_as_blank", "null"]);

    const links = parseLinks(write(program, LINKS), "csv");
    expect(links.refused).toEqual([]);
    expect(links.rows.map(({ code, target }) => [code, target])).toEqual([
      ["one", "https://shop.example/?a=1&b=2;c"],
      ["two", "https://shop.example/2"],
    ]);
  });

  test("with unknown columns of suppressions are refused, with a question if possible", () => {
    const read = (file: string) => () => parseSuppressions(file, "csv", { now: NOW }, "");
    expect(read("username,Unsubscribed at\nann_b,2026-03-02")).toThrow("did you mean suppressed_at?");
    expect(read("username,city\nann_b,Rome")).toThrow("suppressions have no column city: they have");
  });
});

/** Data that the log has of each recipient before the list is imported. */
const HELD = {
  name: "Held",
  timezone: "Asia/Tokyo",
  basis: "opt_in",
  consent_at: "2025-01-02",
  consent_source: "form",
  tracking: "granted",
  tracking_at: "2025-01-02",
  fields: { city: "Held", plan: "Held", other: "Held" },
} as const;

describe("a list changes only the consent, name and fields that it contains", () => {
  const read = LISTS.filter(({ people }) => people.length > 0);
  test.each(read.map((list) => [list.name, list] as const))("%s", (_, list) => {
    const parsed = readList(list);
    if (typeof parsed === "string") throw new Error(parsed);
    for (const [index, { recipient }] of parsed.rows.entries()) {
      const { id, username, ...row } = recipient;
      const who = toRecipient({ id, username });
      const event = { type: "RecipientAdded", data: { recipient: who, ...row, source: "list" } } as const;
      const contact = findContact(given(contacts, [addedOf(who, { ...HELD, fields: { ...HELD.fields } }), event]), who);
      const meant = toMeant(list.people[index]!);
      const { basis = HELD.basis, tracking = HELD.tracking, blank } = meant;
      expect([contact?.basis, contact?.tracking.status]).toEqual([basis, tracking]);
      if (meant.basis === undefined) expect(contact?.consent?.at).toBe(HELD.consent_at);
      expect(contact?.name).toBe(meant.name ?? (blank.includes("name") ? undefined : HELD.name));
      expect(contact?.timezone).toBe(meant.timezone ?? (blank.includes("timezone") ? undefined : HELD.timezone));
      const kept = Object.entries(HELD.fields).filter(([field]) => !blank.includes(field));
      expect(contact?.fields).toEqual({ ...Object.fromEntries(kept), ...meant.fields });
    }
  });
});
