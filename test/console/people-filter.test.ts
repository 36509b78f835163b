// On no harness.
import { expect, test } from "bun:test";
import type { Contact } from "../../projections/contacts.ts";
import { findPeople, type FoundPeople } from "../../src/console/people-filter.ts";

const PEOPLE = 5_000;
const ALL = { after: undefined, limit: 3 };

const contactOf = (username: string): Contact => ({
  username,
  basis: "opt_in",
  fields: {},
  listed: true,
  inbound: false,
  received: false,
  replied: false,
  suppressed: false,
  status: "open",
  again: false,
  skipped: [],
  positions: [],
  consent: null,
  tracking: { status: "unknown" },
  personal_links: [],
});

const everybody = (): Map<string, Contact> =>
  new Map(Array.from({ length: PEOPLE }, (_, at) => [`@p${at}`, contactOf(`p${at}`)]));

/** Calls `between` before each further step, and says how many there were. */
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
  const people = everybody();
  const found = stepThrough(findPeople(() => people, {}, ALL));
  expect(found.steps).toBe(5);
  expect(found.counts.open).toBe(PEOPLE);
  expect(namesOf(found)).toEqual(["p0", "p1", "p2"]);
  expect(found.next).toBe("@p2");
});

test("who is forgotten meanwhile is not shown, also where that makes other states", () => {
  let people = everybody();
  const found = stepThrough(
    findPeople(() => people, {}, ALL),
    () => (people = new Map([...people].filter(([key]) => key !== "@p1"))),
  );
  expect(namesOf(found)).toEqual(["p0", "p2"]);
});

test("who changes meanwhile is shown as they are now", () => {
  const people = everybody();
  const found = stepThrough(
    findPeople(() => people, {}, ALL),
    () => people.set("@p0", { ...contactOf("p0"), status: "sent" }),
  );
  expect(found.page[0]?.status).toBe("sent");
});

test("behind somebody who is forgotten meanwhile the page begins again", () => {
  const people = everybody();
  const found = stepThrough(
    findPeople(() => people, {}, { after: "@p4500", limit: 3 }),
    () => people.delete("@p4500"),
  );
  expect(found.isFromStart).toBe(true);
  expect(found.counts.open).toBe(PEOPLE - 1);
  expect(namesOf(found)).toEqual(["p0", "p1", "p2"]);
});
