import { expect } from "bun:test";
import type { Person } from "../../sandbox/x/people.ts";
import type { Installation } from "../harness/process.ts";

/** Creates people on the sandbox's X who accept messages, and imports them with their consent. */
export async function addPeople(world: Installation, count: number): Promise<void> {
  const rows = ["username,basis"];
  for (let number = 1; number <= count; number++) {
    const username = `person_${number}`;
    const person: Person = { id: String(7_000_000_000 + number), username, name: "Person", receives_your_dm: true };
    world.sandbox.x.people.set(person.id, person);
    rows.push(`${username},opt_in`);
  }
  const imported = await world.execute("recipients", "import", world.file("people.csv", rows.join("\n")));
  expect(imported).toMatchObject({ code: 0 });
}

/**
 * Returns how many recipients got a message (`people`), and the largest number of messages that one of them got
 * (`mostToOne`).
 */
export function arrivals({ sandbox }: Installation): { people: number; mostToOne: number } {
  const { accepted } = sandbox.x;
  return { people: accepted.size, mostToOne: Math.max(0, ...accepted.values()) };
}
