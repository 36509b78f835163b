import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { addPeople } from "./add-people-and-count-messages.ts";
import { isWhole } from "../harness/case-count.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import {
  authorize,
  BEARER,
  exported,
  kill,
  openInstallation,
  until,
  type Installation,
  type Running,
} from "../harness/process.ts";

/** Number of rows: with the fault tests those of a large list, otherwise a part. */
const ROWS = isWhole ? 100_000 : 20_000;
const PEOPLE = 40;

/**
 * Returns the rows of a suppression list. The run's recipients are spread over it in reverse order, so that the import
 * overtakes the run in the middle, however slow the import is.
 */
function listOf(more: string): readonly string[] {
  return Array.from({ length: ROWS }, (_, at) => {
    const every = ROWS / PEOPLE;
    return at % every === 0
      ? `,person_${PEOPLE - at / every},${more}`
      : `17${String(at).padStart(15, "0")}1,user_${at},${more}`;
  });
}

const send = (service: Running, path: string, list: string): Promise<Response> =>
  fetch(service.url + path, { method: "POST", headers: { ...BEARER, "content-type": "text/csv" }, body: list });

/** Returns the maximum memory that a process has used so far, in KiB. */
function largestKib({ process: { pid } }: Running): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** Starts a run slow enough for a list to be imported meanwhile, and sends the list in the middle of it. */
async function sendBesideRun(world: Installation, path: string, list: string) {
  await addPeople(world, PEOPLE);
  const service = await world.serve({ SEND_SPACING_SECONDS: "1" });
  await authorize(service, world.sandbox);
  const run = service.post("/social/run");
  await until(
    () => Promise.resolve(world.sandbox.x.accepted.size),
    (size) => size > 0,
  );
  expect((await run).status).toBe(202);
  const before = largestKib(service);
  const answer = await send(service, path, list);
  const written = new Set(world.sandbox.x.accepted.keys());
  return { service, report: await answer.json(), written, grownKib: largestKib(service) - before };
}

test("a large list of suppressions during a run stops further messages, with bounded memory", async () => {
  await using control = await openInstallation({ x: { dmLimit: 1_000 } });
  const recipients = `id,username,basis\n${listOf("opt_in").join("\n")}`;
  const { grownKib: allowedKib, service: other } = await sendBesideRun(control, "/social/recipients", recipients);
  await kill(other);
  await using world = await openInstallation({ x: { dmLimit: 1_000 } });
  const list = `id,username,reason,suppressed_at\n${listOf("opt_out,2025-03-02").join("\n")}`;
  const { service, report, written, grownKib } = await sendBesideRun(world, "/social/suppressions", list);
  expect(report).toEqual({ added: ROWS, repeated: 0, refused: 0, refused_rows: [], noted_cells: 0, notes: [] });
  await idle(service);
  const events = await exported(world);
  const suppressedAt = new Map<unknown, number>();
  for (const { type, data, position } of events) {
    if (type === "RunFinished") expect(data).toMatchObject({ reason: "completed", sent: written.size });
    const { username = "" } = (data["recipient"] ?? {}) as { username?: string };
    if (type === "RecipientSuppressed") suppressedAt.set(username, position);
    if (type === "DirectMessageAttempted") expect(suppressedAt.get(username)).toBeUndefined();
  }
  expect(suppressedAt.size).toBe(ROWS);
  expect([...world.sandbox.x.accepted.keys()].filter((id) => !written.has(id))).toEqual([]);
  // Some recipients got a message before their suppression, and others got none, so the import and the run have
  // overlapped.
  expect(written.size).toBeWithin(1, PEOPLE);
  expect(grownKib).toBeLessThan(2 * allowedKib);
  const again = await send(service, "/social/suppressions", list);
  expect(await again.json()).toEqual({
    added: 0,
    repeated: ROWS,
    refused: 0,
    refused_rows: [],
    noted_cells: 0,
    notes: [],
  });
});

/** Rows per list; the service appends them in chunks of 64. */
const KILLED_ROWS = isWhole ? 2_560 : 1_280;
const POINTS = isWhole ? 20 : 5;

test("an import cut off by a kill is completed by the same list, without duplicates", async () => {
  await using world = await openInstallation();
  const names = (point: number) => Array.from({ length: KILLED_ROWS }, (_, at) => `user_${point}_${at}`);
  const list = (point: number): string => `username,reason\n${names(point).join(",opt_out\n")},opt_out\n`;
  let service = await world.serve();
  const position = async (): Promise<number> =>
    ((await (await service.get("/social/stats")).json()) as { as_of: { position: number } }).as_of.position;
  let halves = 0;
  for (let point = 0; point < POINTS; point++) {
    const before = await position();
    const dying = send(service, "/social/suppressions", list(point)).catch(() => undefined);
    await until(position, (now) => now >= before + (point * KILLED_ROWS) / POINTS);
    await kill(service);
    await dying;
    service = await world.serve();
    const again = await (await send(service, "/social/suppressions", list(point))).json();
    const { added, repeated } = again as { added: number; repeated: number };
    expect(added + repeated).toBe(KILLED_ROWS);
    if (added > 0 && repeated > 0) halves++;
  }
  const suppressed = (await exported(world)).flatMap(({ type, data }) => {
    const { username = "" } = (data["recipient"] ?? {}) as { username?: string };
    return type === "RecipientSuppressed" ? [username] : [];
  });
  expect(suppressed.toSorted()).toEqual(
    Array.from({ length: POINTS }, (_, point) => names(point))
      .flat()
      .toSorted(),
  );
  expect(halves).toBeGreaterThan(POINTS / 4);
});
