// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import type { EventStore } from "eventstore-lite";
import { makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf } from "../../projections/all.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import type { Terminal } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";
import { replay } from "../../src/commands/replay.ts";
import type { Rebuilt } from "../../src/log/rebuild-projections.ts";
import {
  open,
  rebuildAll,
  servedLog,
  snapshotOf,
  spoil,
  storedTexts,
  truth,
} from "../projector/spoil-snapshots-and-rebuild.ts";
import { capture } from "../harness/capture-command.ts";

/** Options of a rebuild that interrupt it once it has folded `position`. */
function interruptedAt(position: number) {
  const abort = new AbortController();
  const onProgress = (reached: number): void => {
    if (reached >= position) abort.abort();
  };
  return { signal: abort.signal, onProgress };
}

/**
 * Rebuilds all projections. Returns the position at which the rebuild began, which shows if it resumed an earlier one.
 */
async function begunAt(store: EventStore<Event>, restart = false): Promise<number> {
  let begun = -1;
  await rebuildAll(store, { restart, onBegin: (from) => (begun = from) });
  return begun;
}

function differencesOf(rebuilt: readonly Rebuilt[] | undefined): Record<string, number | null> {
  return Object.fromEntries((rebuilt ?? []).map((one) => [one.projection, one.differences?.length ?? null]));
}

const NO_DIFFERENCE = Object.fromEntries(PROJECTION_NAMES.map((name) => [name, 0]));

describe("a rebuild", () => {
  test("finds no difference in correct snapshots, and records that in the log", async () => {
    await using store = await open(await servedLog());
    const { position } = await store.head();
    const rebuilt = await rebuildAll(store);
    expect(differencesOf(rebuilt)).toEqual(NO_DIFFERENCE);
    expect(rebuilt?.find(({ projection }) => projection === "deliveries")?.position).toBe(position);
    const told = await Array.fromAsync(store.read({ types: ["ProjectionRebuilt"] }));
    expect(told.map(({ data }) => data)).toEqual(
      PROJECTION_NAMES.map((projection) => {
        const { version } = projectionOf(projection);
        return { projection, version, position, differences: 0 };
      }) as never,
    );
    expect(await storedTexts(store)).toEqual(await truth(store));
  });

  test("compares each snapshot at its own position, and corrects it", async () => {
    await using store = await open(await servedLog());
    await spoil(store, "quota", ({ days }) => days.set("2001-01-01", 3));
    const skipped = { run_id: "r", recipient: { id: "1" }, reason: "self" } as const;
    await store.append("outreach", [makeEvent("DirectMessageSkipped", makeId(), skipped, {})]);
    expect(differencesOf(await rebuildAll(store))).toEqual({ ...NO_DIFFERENCE, quota: 1 });
    expect(await storedTexts(store)).toEqual(await truth(store));
    expect(differencesOf(await rebuildAll(store))).toEqual(NO_DIFFERENCE);
  });

  test("compares nothing if a snapshot is of another version", async () => {
    await using store = await open(await servedLog());
    const { position } = await store.head();
    await store.snapshots.save("stats", snapshotOf("stats", position, {}, 99));
    expect(differencesOf(await rebuildAll(store))).toEqual({ ...NO_DIFFERENCE, stats: null });
  });

  test("replaces a snapshot that is ahead of the log", async () => {
    await using store = await open(await servedLog());
    const { position } = await store.head();
    await store.snapshots.save("stats", snapshotOf("stats", position + 50, { sent: 1, skipped: 1, failed: 1 }));
    const [stats] = (await rebuildAll(store, {}, ["stats"])) ?? [];
    expect(stats?.differences).toEqual([expect.stringContaining(`position ${position + 50}`)]);
    expect((await store.snapshots.load("stats"))?.position).toBe(position);
  });

  test("catches up with a log that grows during it", async () => {
    await using store = await open(await servedLog());
    const { position } = await store.head();
    const MORE = 6_000;
    let grown: Promise<unknown> | undefined;
    // The append happens within the fold, so that the log grows before the fold ends.
    const growing: EventStore<Event> = {
      ...store,
      async *readFolded(query) {
        const skipped = { run_id: "r", recipient: { id: "1" }, reason: "self" } as const;
        const skips = () => makeEvent("DirectMessageSkipped", makeId(), skipped, {});
        await (grown ??= store.append("outreach", Array.from({ length: MORE }, skips)));
        yield* store.readFolded(query);
      },
    };
    const rebuilt = await rebuildAll(growing);
    expect(rebuilt?.map((one) => one.position)).toEqual(PROJECTION_NAMES.map(() => position + MORE));
    expect(await storedTexts(store)).toEqual(await truth(store));
  });
});

describe("an interrupted rebuild", () => {
  test("is resumed, with the same result", async () => {
    await using store = await open(await servedLog());
    expect(await rebuildAll(store, interruptedAt(1_000))).toBeUndefined();
    let begun = 0;
    const rebuilt = await rebuildAll(store, { onBegin: (from) => (begun = from) });
    expect(begun).toBeGreaterThanOrEqual(1_000);
    expect(begun).toBeLessThan(2_000);
    expect(differencesOf(rebuilt)).toEqual(NO_DIFFERENCE);
    expect(await storedTexts(store)).toEqual(await truth(store));
    const uninterrupted = await rebuildAll(store);
    expect(rebuilt?.map(({ events }) => events)).toEqual(uninterrupted?.map(({ events }) => events));
  });

  test("reports the differences found before the interruption", async () => {
    const file = await servedLog();
    await using store = await open(file);
    const texts = await truth(store, 100);
    const stats = JSON.parse(texts["stats"] ?? "") as { sent: number };
    await store.snapshots.remove(["stats"]);
    await store.snapshots.save("stats", snapshotOf("stats", 100, { ...stats, sent: 9 }));
    expect(await rebuildAll(store, interruptedAt(1_000))).toBeUndefined();
    expect(differencesOf(await rebuildAll(store))).toEqual({ ...NO_DIFFERENCE, stats: 1 });
  });

  test("is resumed once only, and not with --restart", async () => {
    await using store = await open(await servedLog());
    await rebuildAll(store, interruptedAt(500));
    expect(await begunAt(store)).toBeGreaterThan(0);
    expect(await begunAt(store)).toBe(0);
    await rebuildAll(store, interruptedAt(500));
    expect(await begunAt(store, true)).toBe(0);
  });

  test.each(["of another version of the projection", "of another log", "ahead of the log"])(
    "starts again if its saved state is %s",
    async (which) => {
      await using store = await open(await servedLog());
      await rebuildAll(store, interruptedAt(500));
      const kept = await store.snapshots.load("rebuild/stats");
      if (kept === undefined) throw new Error("nothing was kept");
      const changed = {
        "of another version of the projection": { ...kept, version: 99 },
        "of another log": { ...kept, position: kept.position - 1 },
        "ahead of the log": { ...kept, position: 1_000_000 },
      }[which];
      await store.snapshots.remove(["rebuild/stats"]);
      await store.snapshots.save("rebuild/stats", changed ?? kept);
      let begun = -1;
      const rebuilt = await rebuildAll(store, { onBegin: (from) => (begun = from) }, ["stats"]);
      expect([begun, differencesOf(rebuilt)]).toEqual([0, { stats: 0 }]);
    },
  );

  test("by a kill is resumed from the last saved state", async () => {
    const file = await servedLog(4_000);
    const program = fileURLToPath(import.meta.resolve("./programs/rebuild-until-killed.ts"));
    const child = Bun.spawn([process.execPath, program, file], { stdio: ["ignore", "pipe", "inherit"] });
    const { value } = await child.stdout.getReader().read();
    child.kill("SIGKILL");
    await child.exited;
    expect(Number(new TextDecoder().decode(value))).toBeGreaterThan(2_000);
    await using store = await open(file);
    let begun = 0;
    const rebuilt = await rebuildAll(store, { onBegin: (from) => (begun = from) });
    expect(begun).toBe(2_000);
    expect(differencesOf(rebuilt)).toEqual(NO_DIFFERENCE);
    expect(await storedTexts(store)).toEqual(await truth(store));
  });
});

describe("reachlog replay", () => {
  const replayOf = (file: string, args: readonly string[], more: Partial<Terminal> = {}) =>
    capture(replay, args, { env: { DATABASE_URL: `sqlite:${file}` }, ...more });

  test("reports an interruption, and resumes from there", async () => {
    const file = await servedLog();
    const first = await replayOf(file, [], { signal: AbortSignal.abort() });
    expect(first).toEqual({ code: 75, out: "", err: expect.stringContaining("interrupted") });
    const second = await replayOf(file, []);
    expect(second.code).toBe(0);
    expect(second.err).toMatch(/^resuming from position [1-9]\d*, .*\n$/);
    expect(second.out.trim().split("\n")).toHaveLength(PROJECTION_NAMES.length);
  });

  test("draws progress on a terminal, and none for a script", async () => {
    const file = await servedLog();
    const script = await replayOf(file, ["--projection", "clicks", "--json"]);
    expect(script).toMatchObject({ code: 0, err: "" });
    expect(JSON.parse(script.out)).toMatchObject({ projection: "clicks", differences: [] });
    const person = await replayOf(file, ["--projection", "clicks"], { interactive: true });
    expect(person.err).toMatch(/\rclicks █+.* 100 % · .*\/s /);
    expect(person.err).toEndWith("\r\u001B[K");
    expect(person.out).toContain("clicks: ");
  });

  test("exits 1 if something differed, and refuses an unknown projection", async () => {
    const file = await servedLog();
    {
      await using store = await open(file);
      await spoil(store, "clicks", (state) => (state.total += 1));
    }
    const { code, out } = await replayOf(file, []);
    expect(code).toBe(1);
    expect(out).toContain("clicks: ");
    expect(out).toContain("1 differences, corrected:\n  total: stored ");
    const refused = await replayOf(file, ["--projection", "weather"]).catch((fault: unknown) => fault);
    expect(refused).toMatchObject({ kind: "usage", message: expect.stringContaining("weather") });
  });
});
