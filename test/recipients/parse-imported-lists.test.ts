// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { readFileSync } from "node:fs";
import { parseRecipients } from "../../src/recipients/parse-imported-lists.ts";
import type { RecipientsFormat } from "../../src/recipients/file/format-and-limits.ts";
import { ServiceError } from "../../src/platform/service-error.ts";

const fixture = (name: string) => new Uint8Array(readFileSync(new URL(`../fixtures/${name}`, import.meta.url)));

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

const csv = (...lines: string[]) => parseRecipients(lines.join("\n"), "csv", { now: NOW });

/** Imports a CSV file with this one row. Returns the reason for which the row is refused. */
function reasonFor(header: string, row: string): string {
  const { refused } = csv(header, row);
  expect(refused).toHaveLength(1);
  return refused[0]?.reason ?? "";
}

function fileFault(file: string | Uint8Array, format: RecipientsFormat = "csv"): string {
  try {
    parseRecipients(file, format, { now: NOW });
  } catch (error) {
    if (error instanceof ServiceError) return `${error.kind}: ${error.message}`;
    throw error;
  }
  return "accepted";
}

describe("the time zone", () => {
  test("has its own column, and its canonical name", () => {
    const { rows } = csv("handle,Time zone", "ann,europe/berlin", "bea,");
    expect(rows.map(({ recipient }) => [recipient.timezone, recipient.fields])).toEqual([
      ["Europe/Berlin", {}],
      [undefined, {}],
    ]);
  });

  test.each(["Berlin", "+02:00", "CEST+1"])("refuses %s with its row only", (zone) => {
    const { rows, refused } = csv("handle,timezone", `ann,${zone}`, "bea,UTC");
    expect(rows.map(({ recipient }) => recipient.username)).toEqual(["bea"]);
    expect(refused).toEqual([{ line: 2, value: zone, reason: "timezone is no IANA time zone such as Europe/Berlin" }]);
  });
});

describe("a spreadsheet's export with many irregularities", () => {
  const { rows, refused, duplicates } = parseRecipients(fixture("recipients-spreadsheet.csv"), "csv", { now: NOW });
  const byHandle = new Map(rows.map((row) => [row.recipient.username, row]));

  test("gives the valid rows in order, with their lines", () => {
    expect(rows.map(({ line, recipient }) => [line, recipient.username])).toEqual([
      [3, "Bob_Stone"],
      [5, "carla"],
      [7, "dave99"],
      [10, "frank"],
      [14, "ANN_B"],
      [18, "karl"],
    ]);
  });

  test("gives the values as the spreadsheet showed them", () => {
    expect(byHandle.get("Bob_Stone")?.recipient).toMatchObject({
      name: "Bob; Stone",
      basis: "dm_first",
      fields: { "first name": "Bob", note: "two\r\nlines" },
    });
    expect(byHandle.get("carla")?.recipient).toMatchObject({
      name: "Cärla Größe",
      basis: "dm_first",
      fields: { company: "Müller & Söhne" },
    });
    expect(byHandle.get("dave99")?.recipient).toMatchObject({
      name: "Dave 🚀",
      fields: { company: "Rocket; Co", note: '5" screen' },
    });
    expect(Object.keys(byHandle.get("Bob_Stone")?.recipient.fields ?? {})).not.toContain("company");
  });

  test("gives the refused rows with line and reason", () => {
    expect(refused.map(({ line, reason }) => [line, reason.slice(0, 26)])).toEqual([
      [9, "basis must be dm_first, op"],
      [11, "X Handle (username) is nei"],
      [12, "X Handle is empty"],
      [13, "column 7 has a value, but "],
      [15, "X Handle (username) is nei"],
      [16, "name holds damaged charact"],
      [17, "X Handle (username) is nei"],
    ]);
  });

  test("gives the later of two rows of one recipient", () => {
    expect(duplicates).toEqual([{ line: 14, of: 2 }]);
    expect(byHandle.get("ANN_B")?.recipient.fields["company"]).toBe("Acme 2");
  });
});

describe("encodings", () => {
  test("UTF-16 with a byte order mark is read", () => {
    expect(parseRecipients(fixture("recipients-utf16.csv"), "csv", { now: NOW }).rows[0]?.recipient).toMatchObject({
      username: "ann_b",
      name: "Änn",
      basis: "opt_in",
    });
  });
  test("a legacy code page is refused with the line and a suggestion", () => {
    const fault = fileFault(fixture("recipients-windows-1252.csv"));
    expect(fault).toContain("invalid: the file is not valid UTF-8 (line 3; perhaps Windows-1252)");
    expect(fault).toContain('"CSV UTF-8"');
  });
  test.each([
    ["a workbook", [0x50, 0x4b, 3, 4, 20], "Excel workbook"],
    ["UTF-16 without a byte order mark", [0x69, 0, 0x64, 0], "zero bytes"],
    ["cut UTF-16", [0xff, 0xfe, 0x00, 0xd8], "not valid UTF-16LE"],
  ])("%s is refused", (_, bytes, problem) => {
    expect(fileFault(Uint8Array.from(bytes))).toContain(problem);
  });
  test("a byte order mark is not part of the first column's name", () => {
    expect(csv("\uFEFFid", "12").rows).toHaveLength(1);
  });
});

describe("CSV", () => {
  test.each([",", ";", "\t"])("columns separated by %j are recognized", (delimiter) => {
    const { rows } = csv(["username", '"a,b;c"', "name"].join(delimiter), ["ann", "x", "Ann"].join(delimiter));
    expect(rows[0]?.recipient).toMatchObject({
      username: "ann",
      name: "Ann",
      fields: { "a,b;c": "x" },
    });
  });
  test("Excel's sep= line names the delimiter and counts as a line", () => {
    expect(parseRecipients("sep=;\r\nusername;a,b,c\r\nann;1\r\n", "csv", { now: NOW }).rows).toMatchObject([
      { line: 3, recipient: { username: "ann" } },
    ]);
  });
  test.each(["\n", "\r\n", "\r"])("lines that end with %j are counted, also inside quotes", (end) => {
    const { rows } = parseRecipients(["username,note", `ann,"a${end}b${end}c"`, "", "bob,x", ""].join(end), "csv", {
      now: NOW,
    });
    expect(rows.map(({ line }) => line)).toEqual([2, 6]);
  });
  test("mixed line ends are counted", () => {
    expect(
      parseRecipients("username\r\nann\nbob\r\ncarl\rdora", "csv", { now: NOW }).rows.map(({ line }) => line),
    ).toEqual([2, 3, 4, 5]);
  });
  test("an unclosed quote does not affect the rows before it", () => {
    const { rows, refused } = csv("username,note", "ann,x", 'bob,"open', "carl,x", "dora,x");
    expect(rows.map(({ recipient }) => recipient.username)).toEqual(["ann"]);
    expect(refused).toEqual([{ line: 3, value: "", reason: expect.stringContaining("never closed") }]);
  });
  test.each([
    ["", "empty"],
    ["\n \n", "empty"],
    ["name,mail\nAnn,a", "no column is named username, handle or id (found: name, mail)"],
    ["username,Handle\na,b", '"username" and "Handle" both mean username: remove one of the two, or rename it'],
    ["id,City,CITY \n1,a,b", '"City" and "CITY" both mean city'],
    ["id,__proto__\n1,x", "reserved"],
    [`id,${"x".repeat(65)}\n1,x`, "more than 64"],
    [`id,${Array.from({ length: 51 }, (_, index) => `f${index}`).join(",")}\n1`, "more than 50"],
  ])("%j is refused as a whole", (text, problem) => {
    expect(fileFault(text)).toContain(problem);
  });
  test.each([
    ["columns", ","],
    ["quoted columns", '","'],
  ])("a header of a million %s is refused by its number of columns", (_what, between) => {
    const names = Array.from({ length: 1_000_000 }, (_, index) => `c${index}`).join(between);
    const text = between === "," ? names : `"${names}"`;
    expect(fileFault(`${text}\nann`)).toBe("invalid: the header has more than 16384 columns");
  });
  test("a header with one name in 16,384 columns is refused by its number of fields", () => {
    expect(fileFault(Array.from({ length: 16_384 }, () => "c").join(","))).toBe(
      "invalid: more than 50 template fields: remove the columns that your message does not use",
    );
  });
  test("a row that is too wide is refused alone", () => {
    const { rows, refused } = csv("username", "a".concat(",b".repeat(20_000)), "ann");
    expect(rows).toHaveLength(1);
    expect(refused.map(({ reason }) => reason)).toEqual([
      "the row has more than 16384 columns, the header has 1: put quotes around a text that holds the separator",
    ]);
  });
  const bothMean = (one: string, other: string): string =>
    `"${one.slice(0, 64)}…" and "${other.slice(0, 64)}…" both mean ${"x".repeat(64)}…: remove one of the two, or rename it`;
  test("a fault shows a long name and many names shortened", () => {
    const long = "x".repeat(5_000);
    expect(fileFault(`${long},${long}\n`)).toBe(`invalid: ${bothMean(long, long)}`);
    const names = Array.from({ length: 12 }, (_, index) => `f${index}`).join(",");
    expect(fileFault(names)).toContain("(found: f0, f1, f2, f3, f4, f5, f6, f7, f8, f9 and 2 more)");
    const { refused } = parseRecipients(`[{"${long}":1,"${long.toUpperCase()}":2},{"${long}":[]}]`, "json", {
      now: NOW,
    });
    expect(refused.map(({ reason }) => reason)).toEqual([
      bothMean(long, long.toUpperCase()),
      `${"x".repeat(64)}…: neither a text, a number, true, false nor null`,
    ]);
  });
  test("a header alone gives no rows", () => {
    expect(csv("username")).toEqual({ rows: [], refused: [], duplicates: [], notes: { count: 0, first: [] } });
  });
  test.each(["handle", "HANDLE ", "User Name", "user_name", "X handle", "twitter_username", "screen_name"])(
    "%j names the username",
    (header) => {
      expect(csv(header, "ann").rows[0]?.recipient.username).toBe("ann");
    },
  );
});

describe("the recipient of a row", () => {
  test.each([
    ["ann", "ann"],
    ["@Ann_B", "Ann_B"],
    ["＠ann", "ann"],
    [" \u200B@ann\u00A0", "ann"],
    ["https://x.com/ann", "ann"],
    ["http://www.x.com/Ann/", "Ann"],
    ["https://twitter.com/ann/?lang=en", "ann"],
    ["https://mobile.twitter.com/ann#top", "ann"],
    ["x.com/@ann", "ann"],
    ["HTTPS://X.COM/ANN", "ANN"],
    ["https://x.com/ann/status/12", "ann"],
    ["https://twitter.com/#!/ann", "ann"],
    ["abcdefghijklmno", "abcdefghijklmno"],
  ])("%j is read as %s", (username, handle) => {
    expect(csv("username", username).rows[0]?.recipient.username).toBe(handle);
  });
  test.each([
    "abcdefghijklmnop",
    "ann b",
    "ann-b",
    "@@ann",
    "ann@example.com",
    "https://example.com/ann",
    "https://notx.com/ann",
    "https://x.com.evil.example/ann",
    "https://x.com/",
    "https://x.com/home",
    "https://x.com/i/user/12",
    "https://x.com/intent/user?screen_name=ann",
    "анна",
  ])("%j is refused as a username", (username) => {
    expect(reasonFor("username", username)).toContain("username is neither");
  });
  test.each([
    ["1", "1"],
    ["1786543210987654321", "1786543210987654321"],
    ['"=""1786543210987654321"""', "1786543210987654321"],
  ])("the id %s is read as %s", (cell, id) => {
    expect(csv("id", cell).rows[0]?.recipient.id).toBe(id);
  });
  test.each([
    ["1.23457E+18", "a spreadsheet has rounded this id"],
    ['"1,23457E+18"', "a spreadsheet has rounded this id"],
    ["1786543210987650000", "ends in zeros"],
    ["12345678901234567890", "1 to 19 digits"],
    ["0", "1 to 19 digits"],
    ["007", "1 to 19 digits"],
    ["-5", "1 to 19 digits"],
    ["12a", "1 to 19 digits"],
    ["１２", "1 to 19 digits"],
  ])("the id %s is refused", (cell, problem) => {
    expect(reasonFor("id", cell)).toContain(problem);
  });
});

describe("basis", () => {
  test.each([
    ["dm_first", "dm_first"],
    ["DM-First", "dm_first"],
    [" opt in ", "opt_in"],
    ["None", "none"],
    ["", undefined],
  ] as const)("%j is the basis %s", (cell, basis) => {
    expect(csv("username,basis", `ann,${cell}`).rows[0]?.recipient.basis).toBe(basis);
  });
  test.each(["yes", "optin", "true", "dm"])("%j is refused", (cell) => {
    expect(reasonFor("username,basis", `ann,${cell}`)).toBe(
      `basis must be dm_first, opt_in or none; got ${JSON.stringify(cell)}`,
    );
  });
});

describe("duplicates", () => {
  const pick = ({ rows, duplicates, refused }: ReturnType<typeof csv>) => ({
    lines: rows.map(({ line }) => line),
    duplicates,
    refused,
  });
  test("are recognized by handle in any case, and by id", () => {
    expect(pick(csv("id,username", ",ann", ",ANN", "7,", "7,bob"))).toEqual({
      lines: [3, 5],
      duplicates: [
        { line: 3, of: 2 },
        { line: 5, of: 4 },
      ],
      refused: [],
    });
  });
  test("are replaced by a later row that joins two earlier ones", () => {
    expect(pick(csv("id,username", "7,", ",ann", "7,ann"))).toEqual({
      lines: [4],
      duplicates: [
        { line: 4, of: 2 },
        { line: 4, of: 3 },
      ],
      refused: [],
    });
  });
  test("do not include one handle with two ids, which is refused", () => {
    expect(pick(csv("id,username", "7,ann", "8,Ann"))).toEqual({
      lines: [2],
      duplicates: [],
      refused: [{ line: 3, value: "8", reason: "@ann has another id on line 2" }],
    });
  });
});

describe("a refused row shows the invalid value", () => {
  test.each([
    ["username,basis", "ann,sometimes", "sometimes"],
    ["username,id", "ann,1.7e18", "1.7e18"],
    ["username", "no handle at all", "no handle at all"],
    ["username,note", "ann,x,y", "ann, x, y"],
    ["username,name", " ,Ann", " , Ann"],
    ["username,note", `ann,${"y".repeat(4000)}`, `${"y".repeat(100)}…`],
    ["username,note", `ann,${"y".repeat(99)}${"\u{1F44B}".repeat(600)}`, `${"y".repeat(99)}…`],
    ["username,note", `ann,${"y".repeat(99)}\uFFFD`, `${"y".repeat(99)}\uFFFD`],
  ])("for %s / %s", (header, row, value) => {
    expect(csv(header, row).refused).toMatchObject([{ line: 2, value }]);
  });

  test("for JSON, as written", () => {
    const { refused } = parseRecipients('[7, {"id":1,"x":{"a":1}}, {"id":"1","handle":"a","username":"b"}]', "json", {
      now: NOW,
    });
    expect(refused.map(({ value }) => value)).toEqual(["7", '{"a":1}', "username"]);
  });
});

describe("JSON", () => {
  const entries =
    '[\n  {"username": "ann", "Company": "Acme [}\\"", "age": 7, "vip": true, "note": null},\n\n  {"id": 12,\n   "basis": "opt_in"}, {"handle": "@bob"}\n]';

  test.each([
    ["an array", entries, 0],
    ["an object with recipients", `{"recipients":\n${entries}}`, 1],
  ] as const)("in %s is read by line", (_, text, shift) => {
    const { rows } = parseRecipients(text, "json", { now: NOW });
    expect(rows.map(({ line }) => line - shift)).toEqual([2, 4, 5]);
    expect(rows[0]?.recipient).toMatchObject({
      username: "ann",
      fields: { company: 'Acme [}"', age: "7", vip: "true" },
    });
    expect(rows[1]?.recipient).toMatchObject({ id: "12", basis: "opt_in" });
    expect(rows[0]?.recipient.fields).not.toHaveProperty("note");
  });

  test("may have several entries on one line", () => {
    expect(
      parseRecipients('[{"id":1},{"id":2},{"id":3}]', "json", { now: NOW }).rows.map(({ recipient }) => recipient.id),
    ).toEqual(["1", "2", "3"]);
  });

  test("is refused before it is parsed if it is nested too deep", () => {
    const why = "invalid: the file is nested deeper than 16 levels: a recipient is an object of texts";
    expect(fileFault("[".repeat(1_000_000), "json")).toBe(why);
    expect(fileFault('{"a":'.repeat(17), "json")).toBe(why);
    const { refused } = parseRecipients(`{"username":"ann"}\n${"[".repeat(1_000_000)}`, "jsonl", { now: NOW });
    expect(refused).toMatchObject([
      { line: 2, reason: "the line is nested deeper than 16 levels: a recipient is an object of texts" },
    ]);
  });

  test("may contain any number of brackets in texts", () => {
    const text = `\\"\\\\${"[{".repeat(50)}`;
    const { rows } = parseRecipients(JSON.stringify([{ username: "ann", note: text }]), "json", { now: NOW });
    expect(rows[0]?.recipient.fields["note"]).toBe(text);
  });

  test("is refused before it is parsed if it has too many objects and lists", () => {
    const why = "invalid: the file has more than 1000002 objects and lists";
    expect(fileFault(`[[${"[],".repeat(1_000_001)}[]]]`, "json")).toBe(why);
  });

  test.each([
    ['{"id": 1786543210987654321}', "loses its last digits"],
    ['{"id": 1.5}', "1 to 19 digits"],
    ['{"id": 1, "x": {"a": 1}}', "x: neither a text"],
    ['{"id": 1, "x": [1]}', "x: neither a text"],
    ['{"id": 1, "__proto__": "x"}', "reserved"],
    ['{"id": 1, "constructor": "x"}', "reserved"],
    ['{"id": 1, "": "x"}', "a field without a name"],
    ['{"username": "a", "handle": "b"}', '"username" and "handle" both mean username'],
    [`{"id": 1, "x": "${"y".repeat(1001)}"}`, "more than 1000"],
    [`{"id": 1${Array.from({ length: 51 }, (_, index) => `,"f${index}":1`).join("")}}`, "more than 50"],
    ['{"name": "Ann"}', "neither a username nor an id"],
    ["7", "not an object"],
    ["null", "not an object"],
    ["[]", "not an object"],
  ])("%s is refused", (entry, problem) => {
    for (const format of ["json", "jsonl"] as const) {
      const { rows, refused } = parseRecipients(format === "json" ? `[\n${entry}]` : `\n${entry}`, format, {
        now: NOW,
      });
      expect({ rows, refused }).toEqual({
        rows: [],
        refused: [{ line: 2, value: expect.any(String), reason: expect.stringContaining(problem) }],
      });
    }
  });

  test("has fields without a prototype", () => {
    const fields = parseRecipients('[{"id":1,"city":"Rome"}]', "json", { now: NOW }).rows[0]?.recipient.fields ?? {};
    expect(Object.getPrototypeOf(fields)).toBeNull();
    expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
  });

  test.each(["", "{", '{"recipients": 1}', '{"recipients": [], "more": []}', "7"])(
    "is refused as a whole if it is %j",
    (text) => {
      expect(fileFault(text, "json")).toMatch(/^invalid: (?:the file is not valid JSON|neither an array of objects)/);
    },
  );

  test("with one object per line loses only a bad line", () => {
    const { rows, refused } = parseRecipients('{"id":"1"}\r\n\r\n{oops\r\n{"id":"2"}\r\n', "jsonl", { now: NOW });
    expect(rows.map(({ line }) => line)).toEqual([1, 4]);
    expect(refused).toEqual([{ line: 3, value: "{oops", reason: "the line is not valid JSON" }]);
  });
});

describe("limits", () => {
  test("refuse a file of more than 50 MB", () => {
    expect(fileFault(new Uint8Array(50 * 1024 * 1024 + 1))).toContain("the file has more than 52428800 bytes");
  });
  test("refuse more than a million rows", () => {
    expect(fileFault("7\n".repeat(1_000_001), "jsonl")).toContain("more than 1000000 rows");
  });
});

test("any row of cells is accepted, refused or replaced, without an exception", () => {
  const cell = fc.oneof(
    fc.string({ unit: "binary", maxLength: 12 }),
    fc.constantFrom("ann", "@bob", "12", "opt_in", '"', "\r\n", ",", "\uFEFF"),
  );
  const quoted = cell.map((text) => `"${text.replaceAll('"', '""')}"`);
  fc.assert(
    fc.property(fc.array(fc.tuple(quoted, quoted, quoted), { maxLength: 12 }), (table) => {
      const { rows, refused, duplicates } = parseRecipients(
        `username,basis,note\n${table.map((row) => row.join(",")).join("\n")}`,
        "csv",
        { now: NOW },
      );
      const blank = table.filter((row) => row.every((text) => text.slice(1, -1).trim() === "")).length;
      expect(rows.length + refused.length + duplicates.length + blank).toBe(table.length);
    }),
    { numRuns: 500 },
  );
});

describe("columns of consent", () => {
  test("are not template fields, in any spelling", () => {
    const { rows, refused } = csv(
      "Handle,Basis,Consent at,CONSENT-SOURCE,consent_text,Tracking,tracking at,Tracking_Source,tracking  text,city",
      'ann,opt-in,2026-03-02,https://shop.example/form,"Yes, version 3",Granted,2026-03-02T10:00+01:00,form,v3,Rome',
      "bob,,,,,,,,,",
    );
    expect(refused).toEqual([]);
    expect(rows.map(({ recipient }) => ({ ...recipient, fields: { ...recipient.fields } }))).toEqual([
      {
        username: "ann",
        basis: "opt_in",
        consent_at: "2026-03-02",
        consent_source: "https://shop.example/form",
        consent_text: "Yes, version 3",
        tracking: "granted",
        tracking_at: "2026-03-02T09:00:00.000Z",
        tracking_source: "form",
        tracking_text: "v3",
        fields: { city: "Rome" },
        blank: [],
      },
      { username: "bob", fields: {}, blank: ["city"] },
    ]);
  });

  test("in JSON are read the same, with null for unknown values", () => {
    const row = { username: "ann", basis: "opt_in", consent_at: "2026-03-02", consent_source: null, tracking: null };
    for (const format of ["json", "jsonl"] as const) {
      const text = format === "json" ? JSON.stringify([row]) : JSON.stringify(row);
      const recipient = parseRecipients(text, format, { now: NOW }).rows[0]?.recipient;
      expect({ ...recipient, fields: {} }).toEqual({
        username: "ann",
        basis: "opt_in",
        consent_at: "2026-03-02",
        fields: {},
        blank: [],
      });
    }
  });

  test("with invalid values refuse their row only, with the reason", () => {
    const { rows, refused } = csv(
      "username,basis,consent_at,tracking",
      "ann,opt_in,2027-01-01,",
      "bob,opt_in,,sometimes",
      "cid,,2026-03-02,",
      "dan,opt_in,2026-03-02,denied",
    );
    expect(rows.map(({ recipient }) => recipient.username)).toEqual(["dan"]);
    expect(refused).toEqual([
      { line: 2, value: "2027-01-01", reason: "consent_at is in the future" },
      { line: 3, value: "sometimes", reason: 'tracking must be granted, denied or unknown; got "sometimes"' },
      {
        line: 4,
        value: "2026-03-02",
        reason: "consent_at says when they agreed, not how: choose the basis for all rows, or add the column basis",
      },
    ]);
  });

  test("that the operator states for all rows counts only in rows that do not say it", () => {
    const lines = [
      "username,basis,consent_at,consent_source",
      "ann,,2026-03-02,",
      "bob,none,2026-03-02,",
      "cid,wrote first,,letter",
      "dan,,,",
    ];
    const stated = { basis: "opt_in", consent_source: "Newsletter form" } as const;
    const read = parseRecipients(lines.join("\n"), "csv", { now: NOW, stated });
    expect(read.refused).toEqual([]);
    expect(
      read.rows.map(({ recipient: { username, basis, consent_at, consent_source } }) =>
        [username, basis, consent_at, consent_source].map((text) => text ?? "-").join(" "),
      ),
    ).toEqual([
      "ann opt_in 2026-03-02 Newsletter form",
      // This row denies consent, so the source that is stated for consents does not apply to it.
      "bob none 2026-03-02 -",
      "cid dm_first - letter",
      "dan opt_in - Newsletter form",
    ]);
    const denied = parseRecipients("username,consent_at\nann,2026-03-02", "csv", {
      now: NOW,
      stated: { basis: "none", consent_source: "mail" },
    });
    expect(denied.rows[0]?.recipient).toMatchObject({ basis: "none", consent_source: "mail" });
    // If only a source is stated, rows without consent still have none.
    const source = parseRecipients(lines.join("\n"), "csv", { now: NOW, stated: { consent_source: "mail" } });
    expect(source.refused.map(({ line }) => line)).toEqual([2]);
    expect(source.rows.at(-1)?.recipient).toEqual({ username: "dan", fields: expect.anything(), blank: [] });
  });
});

describe("a refusal", () => {
  test.each(["csv", "json"] as const)("names the column as the file does, and as we do, in %s", (format) => {
    const rows = [
      { "X-Handle": "a b", "Time zone": "" },
      { "X-Handle": "ann", "Time zone": "Berlin" },
      { "X-Handle": "", "Time zone": "UTC" },
    ];
    const header = Object.keys(rows[0]!).join(",");
    const text =
      format === "json"
        ? JSON.stringify(rows)
        : [header, ...rows.map((row) => Object.values(row).join(","))].join("\n");
    expect(parseRecipients(text, format, { now: NOW }).refused.map(({ reason }) => reason)).toEqual([
      "X-Handle (username) is neither a handle (1 to 15 letters, digits, underscores) nor the address of an X profile",
      "Time zone (timezone) is no IANA time zone such as Europe/Berlin",
      "X-Handle is empty",
    ]);
  });
});
