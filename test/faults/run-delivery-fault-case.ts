import { expect } from "bun:test";
import { until, stop } from "../harness/process.ts";
import type { FaultRow } from "./delivery-faults.ts";
import { NO_DIGESTS, openLives, untilSettled, type Lives } from "./killed-services.ts";
import { createLoad, type NamedLoad } from "./delivery-load.ts";
import { changeCredential, otherThan, settingsFor, settingsWith, type NetworkRow } from "./delivery-network-table.ts";
import { judge, type Verdict } from "./delivery-verdict.ts";

/** Number of clicks before the fault, so that several are in flight when it begins. */
const CLICKS_BEFORE = 8;
const CLICKS_DURING = 20;
const CLICKS_AFTER = 10;
const DIRECT_SENDS = 3;

/**
 * Number of requests that must fail because of the fault before the test kills the service, and again after the restart
 * before the network recovers.
 */
const HITS = 4;

/** Number of messages or events that the recovered network receives before the test kills the service a second time. */
const ARRIVALS_BEFORE_KILL = 3;

/** Address whose host name never resolves (RFC 6761). HTTPS, because the service refuses to call plain HTTP. */
const NO_HOST = "https://reachlog-test.invalid";

interface Case {
  readonly row: NetworkRow;
  readonly fault: FaultRow;
  readonly lives: Lives;
  readonly load: NamedLoad;
}

/** Applies one fault to one network for a while. Kills the service during the fault and again after it. */
export async function runCase(row: NetworkRow, fault: FaultRow): Promise<Verdict> {
  await using lives = await openLives(row, NO_DIGESTS);
  const load = createLoad(lives, row);
  const running: Case = { row, fault, lives, load };

  await lives.start(settingsWith(row, lives.world.sandbox));
  await load.clicks(CLICKS_BEFORE);
  await untilSettled(lives);
  if (fault.endsBy === undefined) await suffer(running);
  else await beRefused(running);
  await Promise.all([recover(running), load.clicks(CLICKS_AFTER)]);
  await untilSettled(lives);
  expect(await stop(await lives.service())).toBe(0);
  return await judge({ row, fault, lives, acknowledged: load.acknowledged });
}

/** Lets the fault fail some requests, then more after a kill and a restart. */
async function suffer({ row, fault, lives, load }: Case): Promise<void> {
  const { sandbox } = lives.world;
  const { network } = row;
  if (fault.kind !== undefined) {
    const { kind, retryAfter } = fault;
    sandbox.faults.add({ network, kind, ...(retryAfter === undefined ? {} : { retryAfter }) });
  } else {
    await lives.kill();
    await lives.start(withoutHost(settingsFor(row, sandbox), sandbox.url));
  }
  const posted = Promise.all([load.clicks(CLICKS_DURING), load.directs(DIRECT_SENDS)]);
  await hit(lives, row, fault);
  await lives.kill();
  await lives.start();
  await hit(lives, row, fault);
  await posted;
}

async function hit(lives: Lives, { network }: NetworkRow, { hasNoAddress }: FaultRow): Promise<void> {
  if (hasNoAddress === true) {
    // The test cannot count requests to a host without an address. It waits until several failures in a row have opened
    // the circuit.
    await until(
      () => lives.health(),
      ({ circuit }) => circuit !== "closed",
    );
    return;
  }
  const tally = lives.world.sandbox.tally[network];
  const before = tally.requests;
  await until(
    () => Promise.resolve(tally.requests),
    (requests) => requests >= before + HITS,
  );
}

/**
 * Makes the network refuse the channel, so that the service suspends it, even after a kill. Meanwhile direct sends
 * fail, clicks wait, and the operator is told on another channel.
 */
async function beRefused({ row, fault, lives, load }: Case): Promise<void> {
  const { sandbox } = lives.world;
  if (fault.kind === undefined) changeCredential(row, sandbox);
  else sandbox.faults.add({ network: row.network, kind: fault.kind });
  await load.clicks(CLICKS_DURING);
  await until(
    () => lives.health(),
    ({ suspended }) => suspended !== null,
  );
  await load.directs(DIRECT_SENDS);
  await until(
    () => lives.health(otherThan(row.channel).channel),
    ({ pending }) => pending === 0,
  );
  await lives.kill();
  await lives.start();
  await load.clicks(CLICKS_DURING);
  await load.directs(DIRECT_SENDS);
  expect((await lives.health()).suspended).not.toBeNull();
}

/** Ends the fault. Kills the service after the first waiting messages have arrived at the network. */
async function recover({ row, fault, lives }: Case): Promise<void> {
  const { world } = lives;
  world.sandbox.faults.clear();
  if (fault.hasNoAddress === true || fault.endsBy === "credential_changed") {
    await lives.kill();
    await lives.start(settingsFor(row, world.sandbox));
  }
  const killed = lives.killAtArrival(ARRIVALS_BEFORE_KILL);
  if (fault.endsBy === "by_hand") {
    expect(await world.execute("deliveries", "resume", row.channel)).toMatchObject({ code: 0 });
  }
  await killed;
  await lives.start();
}

function withoutHost(settings: Record<string, string>, url: string): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, value.replace(url, NO_HOST)]));
}
