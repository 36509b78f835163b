// On no harness.
import { expect, test } from "bun:test";
import type { Contact } from "../../projections/contacts.ts";
import { findPeople, type FoundPeople } from "../../src/console/people-filter.ts";

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

/** Calls `between` before each further step, and counts the steps. */
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

test("others have their turn while 5,000 people are looked at", () => {
  const people = makePeople();
  const found = stepThrough(findPeople(() => people, {}, ALL));
  expect(found.steps).toBe(5);
  expect(found.counts.open).toBe(PEOPLE);
  expect(namesOf(found)).toEqual(["p0", "p1", "p10"]);
  expect(found.next).toEqual({ value: "p10", key: "@p10" });
});

test("who is forgotten meanwhile is not shown, also where that makes other states", () => {
  let people = makePeople();
  const found = stepThrough(
    findPeople(() => people, {}, ALL),
    () => (people = new Map([...people].filter(([key]) => key !== "@p1"))),
  );
  expect(namesOf(found)).toEqual(["p0", "p10"]);
});

test("who changes meanwhile is shown as they are now", () => {
  const people = makePeople();
  const found = stepThrough(
    findPeople(() => people, {}, ALL),
    () => people.set("@p0", { ...contactOf("p0"), status: "sent" }),
  );
  expect(found.page[0]?.status).toBe("sent");
});

test.each(["ascending", "descending"] as const)(
  "page by page shows each person once, %s, whatever changes between two pages",
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
      // The row that the next page starts after is deleted.
      people.delete(after?.key ?? "");
    } while (after !== undefined);
    const months = shown.map((name) => messagedAt(name));
    const known = months.slice(0, months.indexOf(""));
    expect([shown.length, new Set(shown).size]).toEqual([PEOPLE, PEOPLE]);
    expect(known).toEqual(order === "ascending" ? known.toSorted() : known.toSorted().toReversed());
    expect(months.slice(known.length).join("")).toBe("");
  },
);

/** Month of the last message by name; empty if there was none. */
function messagedAt(name: string): string {
  const at = Number(name.slice(1));
  return at % 3 === 0 ? `2026-0${1 + (at % 9)}` : "";
}
