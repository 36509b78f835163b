import { expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { openSqliteStore, type NewEvent } from "eventstore-lite";
import { BEARER, openInstallation, type Installation, stop } from "../harness/process.ts";
import { click } from "./click-load.ts";

const CLICKS = 5;
const EXIT_CONFIG = 78;

/** Events that only a future version of reachlog knows. */
const FUTURE: readonly (readonly [string, Omit<NewEvent, "id">])[] = [
  ["type", { type: "LinkUnfurled", data: {}, meta: { schema: 1, caller: "future" } }],
  ["version", { type: "LinkClicked", data: {}, meta: { schema: 99, caller: "future" } }],
];

test.each(FUTURE)(
  "serve refuses an event of an unknown %s by position, and audit still exports it",
  async (_, event) => {
    await using world = await openInstallation();
    const position = await append(world, event);

    const refused = await world.execute("serve");
    const told = refused.err.trim().split("\n").at(-1) ?? "";
    console.log(
      `unknown ${event.type} of version ${(event.meta as { schema: number }).schema}: ${refused.code} ${told}`,
    );
    expect(told).toMatch(new RegExp(`\\b${position}\\b`));
    expect(told).toContain(event.type);
    expect(refused.err).not.toMatch(/^\s+at /m);
    expect(refused.code).toBe(EXIT_CONFIG);

    expect(await world.execute("audit", "verify")).toMatchObject({ code: 0 });
    // The export contains the whole log, including what this version cannot interpret.
    const exported = await world.execute("audit", "export");
    const lines = exported.out.trim().split("\n");
    expect([exported.code, lines.length]).toEqual([0, position]);
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ position, type: event.type });
  },
);

/** Creates a log with clicks, then appends the event without the codec. Returns the event's position. */
async function append(world: Installation, event: Omit<NewEvent, "id">): Promise<number> {
  const service = await world.serve();
  for (let number = 0; number < CLICKS; number++) {
    expect((await service.post("/api/tracking/event", click(number), BEARER)).status).toBe(202);
  }
  expect(await stop(service)).toBe(0);
  await using store = await openSqliteStore({ file: join(world.directory, "reachlog.sqlite") });
  const { last } = await store.append("link-go.example/c0", [{ ...event, id: randomUUID() }]);
  return last;
}
