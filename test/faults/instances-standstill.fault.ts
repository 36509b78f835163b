import { USUAL_CHANNELS } from "../harness/sample-click.ts";
import { describe, expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { authorize, BEARER, exported, until, type Running } from "../harness/process.ts";
import { attemptsOf } from "./recorded-message-attempts.ts";
import { countArrivals, rowOf } from "./delivery-network-table.ts";
import { recordsOf } from "./delivery-records.ts";
import { faultsOfDispatch } from "./delivery-rules.ts";
import { count } from "./delivery-verdict.ts";
import { healthOf, openInstances, secondsSince, untilHandedOver, untilReady, type Instances } from "./instances.ts";
import { lossesAmong, shownLosses, startNamedClicks, UNHARMED } from "./instances-load.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

/** Time in ms for which an instance is stopped: as long as the longest lease. */
const STOPPED_MS = 60_000;

const PEOPLE = 6;
const ROWS = [rowOf("meta"), rowOf("slack"), rowOf("line")];

/** Fault of the sandbox: the network accepts the message, and its answer never arrives. */
const UNANSWERED = { kind: "timeout_after_delivery", count: 1 } as const;

/**
 * Time in ms by which X's clock advances: longer than the two hours that X's access tokens live. The service's clock
 * does not move, so the service believes that its tokens are valid.
 */
const PAST_LIFE_MS = 2 * 3_600_000 + 60_000;

async function openTwo(): Promise<Instances> {
  const settings = { DATABASE_URL: await newDatabase(), CHAT_DIGEST_AFTER_SECONDS: "3600" };
  return openInstances({ count: 2, rows: ROWS, settings });
}

/** Returns the position up to which the service has read the log. */
async function positionOf(service: Running): Promise<number> {
  const stats = (await (await service.get("/social/stats")).json()) as {
    readonly as_of: { readonly position: number };
  };
  return stats.as_of.position;
}

describe.concurrent("an instance frozen for a minute while another takes over its roles", () => {
  test("sends nothing twice and records nothing in its former run and dispatches", async () => {
    await using instances = await openTwo();
    const { world } = instances;
    const arrived = ROWS.map((row) => countArrivals(row, world.sandbox));
    const [first, second] = await Promise.all([instances.at(0), instances.at(1)]);
    await addPeople(world, PEOPLE);
    await authorize(second.service, world.sandbox);
    using load = startNamedClicks(instances, { callers: 2, pauseMs: 200, places: [1] });
    await load.more(10);

    world.sandbox.faults.add({ network: "x", path: "/messages", ...UNANSWERED });
    expect((await first.service.post("/social/run")).status).toBe(202);
    const { roles } = await healthOf(first.service);
    const held = Object.keys(roles).filter((role) => roles[role] === first.id);
    const all = ["run", "retention", "signed-heads", ...USUAL_CHANNELS.map((name) => `dispatcher-${name}`)];
    expect(held).toEqual(expect.arrayContaining(all));
    world.sandbox.faults.add({ network: "slack", ...UNANSWERED });
    await until(
      async () => world.sandbox.faults.list(),
      (faults) => faults.length === 0,
    );
    first.service.process.kill("SIGSTOP");
    const [took] = await Promise.all([
      untilHandedOver(second.service, first.id, held),
      until(
        () => second.service.post("/social/run", undefined, { ...BEARER, prefer: "wait=300" }),
        ({ status }) => status !== 409,
      ),
      Bun.sleep(STOPPED_MS),
    ]);
    first.service.process.kill("SIGCONT");
    for (const sentence of ["a run failed", "a dispatch could not be recorded", "another instance took over a role"]) {
      await until(
        async () => first.service.log(),
        (log) => log.includes(sentence),
      );
    }
    await load.more(10);
    await load.stop();
    await untilReady(instances);
    // Waits until the first instance, which stood still, has read the whole log. It must not have taken back any role.
    const [own, other] = await until(
      () => Promise.all([first, second].map(({ service }) => healthOf(service))),
      ([one, two]) =>
        one!.log.position === two!.log.position && Object.values(two!.channels).every(({ pending }) => pending === 0),
    );
    expect(Object.values(other!.roles)).not.toContain(first.id);
    expect(own!.roles).toEqual(other!.roles);
    expect([await instances.end(0, "SIGTERM"), await instances.end(1, "SIGTERM")]).toEqual([0, 0]);

    const log = await exported(world);
    const deliveries = ROWS.map((row, index) => {
      const all = recordsOf(log, row, { arrived: arrived[index]!, kills: [] });
      return { network: row.network, ...count(all), broken: all.flatMap((record) => faultsOfDispatch(record, row)) };
    });
    const attempts = await attemptsOf(world);
    const { people, mostToOne } = arrivals(world);
    const losses = lossesAmong(log, load);
    console.log(
      `stopped for ${STOPPED_MS / 1_000} s in its run and dispatches: others had its roles after ${JSON.stringify(took)} s; ` +
        `messages ${people} of ${PEOPLE}, at most ${mostToOne} to one; acknowledged ${load.acknowledged.size}, ${shownLosses(losses)}; ` +
        deliveries.map(({ network, delivered, inDoubt }) => `${network} ${delivered}, in doubt ${inDoubt}`).join("; "),
    );
    expect({ ...losses, people, mostToOne }).toEqual({ ...UNHARMED, people: PEOPLE, mostToOne: 1 });
    expect(deliveries.flatMap(({ broken }) => broken)).toEqual([]);
    expect(deliveries.find(({ network }) => network === "slack")?.inDoubt).toBeGreaterThan(0);
    expect(attempts).toMatchObject({ open: 0, foundSent: 1, abandonedRuns: 1 });
    expectNothingAfterClaims(log);
    await expectWhole(world);
  });

  test("continues with the tokens that the other refreshed", async () => {
    await using instances = await openTwo();
    const { world } = instances;
    const [first, second] = await Promise.all([instances.at(0), instances.at(1)]);
    await authorize(first.service, world.sandbox);
    const told = await positionOf(first.service);
    await until(
      () => positionOf(second.service),
      (position) => position >= told,
    );
    world.sandbox.clock.advance(PAST_LIFE_MS);
    // This request for a token must not reach X: X would revoke the grant if a refresh token was used twice.
    world.sandbox.faults.add({ network: "x", kind: "timeout_before", path: "/oauth2/token", count: 1 });
    const cutOff = first.service.get("/social/me").catch(() => undefined);
    await until(
      async () => world.sandbox.faults.list(),
      (faults) => faults.length === 0,
    );
    first.service.process.kill("SIGSTOP");
    const stoppedAt = performance.now();
    const [{ status, tookS }] = await Promise.all([
      second.service.get("/social/me").then((answer) => ({ status: answer.status, tookS: secondsSince(stoppedAt) })),
      Bun.sleep(STOPPED_MS),
    ]);
    first.service.process.kill("SIGCONT");
    await cutOff;
    const again = await first.service.get("/social/me");
    const uses = [...world.sandbox.x.refreshUses.values()];
    console.log(
      `stopped for ${STOPPED_MS / 1_000} s in a refresh: another had made one after ${tookS} s; ` +
        `refresh tokens used ${uses.length}, at most ${Math.max(...uses)} times, grants ended ${world.sandbox.x.revokedFamilies.size}`,
    );
    expect([status, again.status]).toEqual([200, 200]);
    expect(uses).toEqual([1]);
    expect(world.sandbox.x.revokedFamilies.size).toBe(0);
    expect([await instances.end(0, "SIGTERM"), await instances.end(1, "SIGTERM")]).toEqual([0, 0]);
    const types = (await exported(world)).map(({ type }) => type);
    expect(types.filter((type) => type.startsWith("TokenRefresh"))).toEqual(["TokenRefreshed"]);
    await expectWhole(world);
  });
});

/**
 * Expects that a dispatcher records no outcome after another one has claimed the role with a newer lease, and that
 * nothing of a run is recorded after the run is closed.
 */
function expectNothingAfterClaims(log: Awaited<ReturnType<typeof exported>>): void {
  const tokens = log.filter(({ type }) => type === "DispatchClaimed").map(({ data }) => Number(data["token"]));
  expect(new Set(tokens).size).toBe(2);
  expect(tokens).toEqual(tokens.toSorted((one, other) => one - other));
  const closed = log.findIndex(({ type }) => type === "RunAbandoned");
  const late = log.slice(closed).filter(({ data }) => data["run_id"] === log[closed]?.data["run_id"]);
  expect(late.map(({ type }) => type)).toEqual(["RunAbandoned"]);
}
