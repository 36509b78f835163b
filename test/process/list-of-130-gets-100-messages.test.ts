// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import type { Person } from "../../sandbox/x/people.ts";
import { authorize, exported, openInstallation } from "../harness/process.ts";

/** A typical list of 130 rows: 104 recipients who may be contacted, and others who may not, each for one reason. */
function population(): { people: Person[]; csv: string } {
  const people: Person[] = [];
  const rows: string[] = ["username,name,basis"];
  for (let number = 1; number <= 125; number++) {
    const username = `person_${number}`;
    const closed = number % 25 === 1;
    people.push({ id: String(5_000_000_000 + number), username, name: `Person ${number}`, receives_your_dm: !closed });
    rows.push(`${number % 2 === 0 ? "@" : ""}${username},Person ${number},${number % 25 === 2 ? "none" : "opt_in"}`);
  }
  // Adds some of the recipients a second time, by the addresses of their profiles and in other letter case.
  for (let number = 10; number < 15; number++) rows.push(`https://x.com/PERSON_${number},Twice ${number},opt_in`);
  return { people, csv: rows.join("\r\n") };
}

test("a list of 130 rows gets exactly 100 messages, skips with reasons, and then 429", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000 } });
  const { people, csv } = population();
  for (const person of people) world.sandbox.x.people.set(person.id, person);
  const imported = await world.command("recipients", "import", world.file("people.csv", csv));
  expect(imported.out).toStartWith("125 added, 0 updated, 0 refused\n");
  expect(imported.out.match(/the same person as line/g)).toHaveLength(5);
  for (const number of [20, 40, 60]) await world.command("recipients", "suppress", `@person_${number}`);

  const service = await world.host();
  await authorize(service, world.sandbox);
  const run = await (await service.post("/social/run", undefined, { prefer: "wait=300" })).json();
  expect(run).toMatchObject({ reason: "daily_limit_reached", sent: 100, skipped: 13, failed: 0, in_doubt: 0 });

  const { accepted } = world.sandbox.x;
  expect([accepted.size, Math.max(...accepted.values())]).toEqual([100, 1]);
  expect(await (await service.get("/social/stats")).json()).toMatchObject({ sent: 100, skipped: 13, failed: 0 });
  const reasons = (await exported(world)).filter(({ type }) => type === "DirectMessageSkipped");
  const counts = Object.groupBy(reasons, ({ data }) => String(data["reason"]));
  expect(Object.fromEntries(Object.entries(counts).map(([reason, skips]) => [reason, skips?.length]))).toEqual({
    cannot_receive_dm: 5,
    no_consent: 5,
    suppressed: 3,
  });

  const again = await service.post("/social/run");
  expect([again.status, ((await again.json()) as { type: string }).type]).toEqual([
    429,
    "urn:reachlog:problem:daily-limit-reached",
  ]);
  expect(Number(again.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(again.headers.get("ratelimit")).toContain("r=0");
  expect((await exported(world)).at(-1)).toMatchObject({ type: "RunRefused", data: { used: 100 } });
  expect(accepted.size).toBe(100);
});
