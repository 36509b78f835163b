import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Snapshot } from "eventstore-lite";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf, type ProjectionName } from "../../projections/all.ts";
import { decodeState, encodeState } from "../../projections/encode-state.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { unpackState } from "../../src/projector/past-snapshots.ts";
import { filePlace } from "../../src/privacy/locate-log.ts";
import { openLogAt } from "../../src/privacy/open-log.ts";
import {
  authorize,
  BEARER,
  openInstallation,
  until,
  type Running,
  type Installation,
  stop,
  kill,
} from "../harness/process.ts";
import { click } from "./click-load.ts";
import { addPeople } from "./add-people-and-count-messages.ts";

test("a service's history folds to the same bytes from the start and from every snapshot", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000, lateCommitMs: 50 } });
  await liveThrough(world);
  const { events, snapshots } = await readLog(world);
  let bytes = 0;
  for (const name of PROJECTION_NAMES) {
    const whole = encodeState(foldFrom(name, events));
    expect(encodeState(foldFrom(name, events))).toBe(whole);
    // Snapshot that the service stored when it stopped. The service had folded it event by event while it ran.
    const stored = snapshots.get(name);
    expect(stored && encodeState(await unpackState(stored.state))).toBe(
      encodeState(foldFrom(name, events.slice(0, stored?.position))),
    );
    for (let at = 0; at <= events.length; at++) {
      const snapshot = encodeState(foldFrom(name, events.slice(0, at)));
      const resumed = encodeState(foldFrom(name, events.slice(at), decodeState(snapshot)));
      if (resumed !== whole) throw new Error(`${name}: another state from the snapshot at ${at} on`);
    }
    bytes += whole.length;
  }
  const types = new Set(events.map(({ type }) => type));
  console.log(
    `determinism: ${events.length} events of ${types.size} types, ${PROJECTION_NAMES.length} projections, ` +
      `${bytes} bytes, equal from all ${events.length + 1} snapshot positions`,
  );
  // The history must contain the types in HARD, which are hard to fold.
  for (const type of HARD) expect(types).toContain(type);
});

const HARD = [
  "LinkClicked",
  "NotificationRequested",
  "DispatchFailed",
  "DispatchInDoubt",
  "DispatchRetryRequested",
  "ChannelSuspended",
  "ChannelResumed",
  "DirectMessageInDoubt",
  "DirectMessageFailed",
  "DirectMessageSkipped",
  "RecipientSuppressed",
  "RunAbandoned",
  "RunFinished",
  "DryRunFinished",
  "RequestAnswered",
] as const;

/**
 * Creates a history with everything that goes wrong: refusals, silence, doubts, retries, a kill and an operator's
 * commands.
 */
async function liveThrough(world: Installation): Promise<void> {
  const { faults, slack } = world.sandbox;
  await addPeople(world, 16);
  await world.execute("recipients", "suppress", "person_3");
  let service = await world.serve();
  await authorize(service, world.sandbox);
  for (let number = 0; number < 12; number++) {
    await service.post("/api/tracking/event", click(number), { ...BEARER, "idempotency-key": `k${number % 8}` });
  }
  faults.add({ network: "meta", kind: "500", count: 3 });
  faults.add({ network: "slack", kind: "reset_after_delivery", count: 1 });
  faults.add({ network: "telegram", kind: "429", retryAfter: 1, count: 1 });
  for (const message of ["one", "two"]) await service.post("/api/notify", { message }, { "idempotency-key": message });
  await service.post("/api/messaging", { text: "hello" }, BEARER);
  await service.post("/social/run", { dry_run: true });

  faults.add({ network: "x", kind: "timeout_after_delivery", path: "/messages", count: 1 });
  await service.post("/social/run");
  await until(
    () => Promise.resolve(world.sandbox.x.accepted.size),
    (size) => size >= 1,
  );
  await kill(service);
  service = await world.serve();
  await idle(service);
  faults.add({ network: "x", kind: "reset_before", path: "/messages", count: 1 });
  await service.post("/social/run", undefined, { prefer: "wait=300" });
  // Waits until no delivery is pending. A click that waits for a retry would otherwise stay pending when the channel is
  // suspended.
  await settled(service);

  faults.add({ network: "slack", kind: "channel_archived", count: 1 });
  await service.post("/api/notify", { message: "refused" });
  await settled(service);
  const arrived = slack.messages.total;
  expect(await world.execute("deliveries", "resume", "chat")).toMatchObject({ code: 0 });
  await world.execute("deliveries", "retry", "--all", "--yes");
  await until(
    () => Promise.resolve(slack.messages.total),
    (total) => total > arrived,
  );
  await settled(service);
  expect(await stop(service)).toBe(0);
}

async function idle(service: Running): Promise<void> {
  await until(
    async () => (await (await service.get("/social/health")).json()) as { running: boolean },
    ({ running }) => !running,
  );
}

async function settled(service: Running): Promise<void> {
  await idle(service);
  await until(
    async () => (await (await service.get("/api/health")).json()) as { channels: Record<string, { pending: number }> },
    ({ channels }) => Object.values(channels).every(({ pending }) => pending === 0),
  );
}

async function readLog({
  directory,
}: Installation): Promise<{ events: readonly Recorded[]; snapshots: ReadonlyMap<ProjectionName, Snapshot> }> {
  await using store = await openLogAt(filePlace(logFiles(join(directory, "reachlog.sqlite")), undefined));
  const events: Recorded[] = [];
  for await (const event of store.read()) events.push(event);
  const snapshots = new Map<ProjectionName, Snapshot>();
  for (const name of PROJECTION_NAMES) {
    const snapshot = await store.snapshots.load(name);
    if (snapshot !== undefined) snapshots.set(name, snapshot);
  }
  return { events, snapshots };
}

function foldFrom(name: ProjectionName, events: readonly Recorded[], from?: unknown): unknown {
  const projection = projectionOf(name);
  const types = new Set<string>(projection.types);
  let state = from ?? projection.initial();
  for (const event of events) if (types.has(event.type)) state = projection.evolve(state, event);
  return state;
}
