// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { NewEvent } from "../../src/log/event-log.ts";
import type { Projector } from "../../src/projector/projector.ts";
import { LOG_ENGINES, type LogEngine } from "../harness/in-process/temporary-log.ts";
import { openOutreachOn, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";

/**
 * Opens a world whose runs learn of new events only when they wait for them. After the first intent, `act` is called
 * once: when the run renews its lease (`renewal`) or reads the log's head (`look`).
 */
async function worldWith(
  call: "renewal" | "look",
  act: (world: OutreachHarness) => unknown,
  engine: LogEngine = "in a file",
  before: readonly NewEvent[] = [],
) {
  const world = await openOutreachOn(engine, "10", "11");
  if (before.length > 0) await world.append(before);
  const { projector } = await world.start();
  const { run } = await world.start({ projector: lagging(projector) });
  const { head, leases } = world.store;
  let hasActed = false;
  const actOnce = async (): Promise<void> => {
    if (hasActed || (await world.events("DirectMessageAttempted")).length === 0) return;
    hasActed = true;
    await act(world);
  };
  const watched = {
    async acquire(...asked: Parameters<typeof leases.acquire>) {
      if (call === "renewal") await actOnce();
      return leases.acquire(...asked);
    },
    async head() {
      if (call === "look") await actOnce();
      return head();
    },
  };
  Object.assign(world.store, { head: watched.head, leases: { ...leases, acquire: watched.acquire } });
  return { world, run };
}

/** Makes a projector lag: it shows new events only after a caller has waited for them, as on a busy machine. */
function lagging(projector: Projector): Projector {
  let contacts = structuredClone(projector.state("contacts"));
  return {
    ...projector,
    state: ((name) => (name === "contacts" ? contacts : projector.state(name))) as Projector["state"],
    async until(position) {
      await projector.until(position);
      contacts = structuredClone(projector.state("contacts"));
    },
  };
}

test("a suppression that is recorded while the lease is renewed withholds the message", async () => {
  const { world: opened, run } = await worldWith("renewal", (world) =>
    world.append([{ type: "RecipientSuppressed", data: { recipient: { id: "10" }, reason: "by_hand" } }]),
  );
  await using world = opened;
  expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: 1 });
  expect(world.network.asked).toEqual(["11"]);
  expect(await world.events("DirectMessageFailed")).toMatchObject([
    { data: { recipient: { id: "10" }, reason: "suppressed", frees_quota: true } },
  ]);
});

test.each(LOG_ENGINES)(
  "a hold during the lease's renewal withholds the message until its release: in a log %s",
  async (engine) => {
    const held = { recipient: { id: "10" }, message_id: "m", received_at: "2026-03-01T08:00:00.000Z" };
    const { world: opened, run } = await worldWith(
      "renewal",
      (world) => world.append([{ type: "RecipientHeld", data: held }]),
      engine,
    );
    await using world = opened;
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, failed: 1 });
    expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
    expect(world.network.asked).toEqual(["11"]);
    expect(await world.events("DirectMessageFailed")).toMatchObject([
      { data: { recipient: { id: "10" }, reason: "withdrawn", retry: true, frees_quota: true } },
    ]);
    await world.append([{ type: "RecipientReleased", data: { recipient: { username: "user_10" } } }]);
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
  },
);

const withdrawn = { recipient: { id: "10" }, basis: "none" } as const;

test.each([
  ["an end of the campaign", { type: "CampaignEnded", data: { name: "spring" } }, ["10", "11"], 1],
  ["a withdrawal of consent", { type: "ConsentRecorded", data: withdrawn }, ["10"], 1],
] as const)("%s during the lease's renewal withholds the campaign's message", async (_what, event, ids, failed) => {
  const data = { name: "spring", text: "Hello {{name}}", audience: {} };
  const consent = { basis: "opt_in", consent_at: "2026-01-01", consent_source: "form" } as const;
  const { world: opened, run } = await worldWith("renewal", (world) => world.append([event]), "in a file", [
    { type: "CampaignCreated", data },
    ...["10", "11"].map((id) => ({ type: "ConsentRecorded", data: { recipient: { id }, ...consent } }) as const),
  ]);
  await using world = opened;
  expect(await run({ selection: { campaign: "spring" } })).toMatchObject({ failed });
  expect(world.network.asked).toEqual(["10", "11"].filter((id) => !ids.includes(id as never)));
  expect(await world.events("DirectMessageFailed")).toMatchObject([
    { data: { recipient: { id: "10" }, reason: "withdrawn", retry: true, frees_quota: true } },
  ]);
});

test("another account that is linked while the lease is renewed withholds the message", async () => {
  const user = { id: "2", username: "others", name: "Others" };
  const { world: opened, run } = await worldWith("renewal", (world) =>
    world.append([
      { type: "AccountAuthorized", data: { user, scopes: ["dm.write"], expires_at: "2027-01-01T00:00:00Z" } },
    ]),
  );
  await using world = opened;
  expect(await run()).toMatchObject({ reason: "not_authorized", sent: 0, failed: 1 });
  expect(world.network.asked).toEqual([]);
  expect(await world.events("DirectMessageFailed")).toMatchObject([
    { data: { recipient: { id: "10" }, reason: "withdrawn", retry: true, frees_quota: true } },
  ]);
});

test("a last read of the log beyond the lease's safe time withholds the message", async () => {
  const { world: opened, run } = await worldWith("look", (world) => world.time.jump(15_000));
  await using world = opened;
  expect(await run()).toMatchObject({ sent: 1, failed: 1 });
  expect(world.network.asked).toEqual(["11"]);
  expect(await world.events("DirectMessageFailed")).toMatchObject([
    { data: { recipient: { id: "10" }, reason: "withdrawn", retry: true } },
  ]);
});
