// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { parseLinks, parseRecipients, parseSuppressions } from "../../src/recipients/parse-imported-lists.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

describe("common headers of a list of recipients", () => {
  const read = (header: string, row: string) => parseRecipients(`${header}\n${row}`, "csv", { now: NOW });

  test.each([
    "Handle",
    "@handle",
    "X username",
    "Twitter Handle",
    "X / Twitter handle",
    "Screen Name",
    "Username",
    "Twitter URL",
    "X profile",
    "Twitter",
    "X (Twitter)",
  ])("name the recipient: %s", (header) => {
    const { rows } = read(`${header},Company`, "https://x.com/ada,Acme");
    expect(rows[0]?.recipient).toMatchObject({ username: "ada", fields: { company: "Acme" } });
  });

  test.each(["User", "Account", "X", "Profile", "Username (X)", "Your X handle", "X profile link", "User ID"])(
    "cause a question if no other column names the recipient: %s",
    (header) => {
      const meant = header === "User ID" ? "id" : "username";
      const question = `did you mean ${meant} by "${header}"? Then rename it`;
      expect(() => read(`${header},Company`, "1,Acme")).toThrow(question);
      // If the file also has a column of handles, the column with the doubtful name becomes a field for the template.
      expect(read(`Handle,${header}`, "ada,1").rows[0]?.recipient.fields).toEqual({ [header.toLowerCase()]: "1" });
    },
  );

  test.each([
    ["Opted in", "basis"],
    ["Opt-in?", "basis"],
    ["Consent", "basis"],
    ["Permission", "basis"],
    ["GDPR", "basis"],
    ["Opt-in date", "consent_at"],
    ["Opt In Date/Time", "consent_at"],
    ["Date opted in", "consent_at"],
    ["Opt-in source", "consent_source"],
    ["Tracking consent", "tracking"],
  ])("cause a question if they may mean consent: %s", (header, meant) => {
    expect(() => read(`Handle,${header}`, "ada,yes")).toThrow(`"${header}" is not known: did you mean ${meant}?`);
  });

  test("cause a note if one may be the name, and the list is accepted", () => {
    const { rows, notes } = read("Handle,First Name,Company", "ada,Ada,Acme");
    expect(rows).toHaveLength(1);
    expect(notes.first).toMatchObject([{ note: "did_you_mean_name", column: "first name" }]);
  });
});

describe("common headers of a list of suppressions", () => {
  const read = (header: string) => parseSuppressions(`${header}\nada,2026-01-02`, "csv", { now: NOW }, "key");

  test.each(["Handle", "@handle", "X username", "Twitter URL"])("name the recipient: %s", (header) => {
    expect(read(`${header},Reason`).rows[0]?.suppression).toMatchObject({ username: "ada" });
  });

  test.each([
    ["Handle,Unsubscribed at", "did you mean suppressed_at?"],
    ["Handle,Opt-out date", "did you mean suppressed_at?"],
    ["Handle,Date", "did you mean suppressed_at?"],
    ["Handle,Notes", "did you mean reason?"],
    ["User,Reason", "did you mean username?"],
    ["Handle,Opted out", "keep those that say yes in the column opted out, and remove the column"],
    ["Handle,Company", "suppressions have no column company: they have id, username, hash, reason and suppressed_at"],
  ])("are refused with a question or the reason: %s", (header, words) => expect(() => read(header)).toThrow(words));
});

describe("common headers of a list of links", () => {
  const read = (header: string) => parseLinks(`${header}\none,https://shop.example/`, "csv");

  test.each(["Code,Target", "Short code,URL", "Slug,Destination", "Back-half,Long URL"])(
    "are recognized: %s",
    (header) => expect(read(header).rows).toMatchObject([{ code: "one", target: "https://shop.example/" }]),
  );

  test.each([
    ["Short link,Long URL", 'did you mean code by "Short link"?'],
    ["Alias,Website", 'did you mean code by "Alias" or target by "Website"?'],
    ["Code,Link", 'did you mean target by "Link"?'],
  ])("cause a question: %s", (header, words) => expect(() => read(header)).toThrow(words));
});
