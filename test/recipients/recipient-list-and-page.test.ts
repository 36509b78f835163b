// These tests call the code directly.
import { expect, test } from "bun:test";
import type { Contact } from "../../projections/contact-state.ts";
import { findPeople, type FoundPeople } from "../../src/recipients/recipient-list-and-page.ts";

const PEOPLE = 5_000;
const ALL = { sort: { by: "person", order: "ascending" }, after: undefined, limit: 3 } as const;

const contactOf = (username: string): Contact => ({
  username,
  basis: "opt_in",
  fields: {},
  listed: true,
  inbound: false,
  received: false,
  replied: false,
  suppressed: false,
  held: false,
  status: "open",
  again: false,
  skipped: [],
  positions: [],
  consent: null,
  tracking: { status: "unknown" },
  personal_links: [],
});

const makePeople = (): Map<string, Contact> =>
  new Map(Array.from({ length: PEOPLE }, (_, at) => [`@p${at}`, contactOf(`p${at}`)]));

/**
 * Runs a search to its end and counts its steps. Calls `between` between two steps, to change the data under the
 * search.
 */
function stepThrough(
  search: Generator<void, FoundPeople, void>,
  between: () => void = () => {},
): FoundPeople & { steps: number } {
  for (let steps = 1; ; steps++) {
    const step = search.next();
    if (step.done === true) return { ...step.value, steps };
    between();
  }
}

const namesOf = ({ page }: FoundPeople) => page.map(({ username }) => username);

test("a search of 5,000 recipients is divided into steps", () => {
  const people = makePeople();
  const found = stepThrough(findPeople(() => people, {}, ALL));
  expect(found.steps).toBe(5);
  expect(found.counts.open).toBe(PEOPLE);
  expect(namesOf(found)).toEqual(["p0", "p1", "p10"]);
  expect(found.next).toEqual({ value: "p10", key: "@p10" });
});

test("a recipient forgotten during the search is not found", () => {
  let people = makePeople();
  const found = stepThrough(
    findPeople(() => people, {}, ALL),
    () => (people = new Map([...people].filter(([key]) => key !== "@p1"))),
  );
  expect(namesOf(found)).toEqual(["p0", "p10"]);
});

test("a recipient who changes during the search is shown as changed", () => {
  const people = makePeople();
  const found = stepThrough(
    findPeople(() => people, {}, ALL),
    () => people.set("@p0", { ...contactOf("p0"), status: "sent" }),
  );
  expect(found.page[0]?.status).toBe("sent");
});

test.each(["ascending", "descending"] as const)(
  "paging shows each recipient once, %s, despite deletions between pages",
  (order) => {
    const people = makePeople();
    for (let at = 0; at < PEOPLE; at += 3)
      people.set(`@p${at}`, { ...contactOf(`p${at}`), attempted_at: messagedAt(`p${at}`) });
    const shown: string[] = [];
    let after: FoundPeople["next"];
    do {
      const found = stepThrough(findPeople(() => people, {}, { sort: { by: "message", order }, after, limit: 700 }));
      shown.push(...namesOf(found).map(String));
      after = found.next;
      // Deletes the row after which the next page has to start.
      people.delete(after?.key ?? "");
    } while (after !== undefined);
    const months = shown.map((name) => messagedAt(name));
    const known = months.slice(0, months.indexOf(""));
    expect([shown.length, new Set(shown).size]).toEqual([PEOPLE, PEOPLE]);
    expect(known).toEqual(order === "ascending" ? known.toSorted() : known.toSorted().toReversed());
    expect(months.slice(known.length).join("")).toBe("");
  },
);

/**
 * Returns the month that the test gives as the time of a contact's last message, computed from the number in the
 * contact's name; empty for two of three contacts, which have no message.
 */
function messagedAt(name: string): string {
  const at = Number(name.slice(1));
  return at % 3 === 0 ? `2026-0${1 + (at % 9)}` : "";
}
