import { expect, test } from "bun:test";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { EventStore } from "eventstore-lite";
import { createLogTree, openCheckpoint, parsePublicKey, proveExtension, type Checkpoint } from "eventstore-lite/proof";
import { startPostgres, rootsOfEvents } from "eventstore-lite/testing";
import { loadConfig } from "../../src/config/config.ts";
import { openStoredLog } from "../../src/privacy/open-log.ts";
import { BEARER, kill, openInstallation, stop, until, type Installation, type Running } from "../harness/process.ts";
import { healthOf, openInstances, untilReady } from "./instances.ts";
import { startNamedClicks } from "./instances-load.ts";
import { startLoad } from "./click-load.ts";
import { isWhole } from "../harness/case-count.ts";
import { expectWhole, lossesOf } from "./expect-whole-log.ts";
import { openWitness, readPublicKey } from "./witness-process.ts";

const FLAGS = ["--preload", join(import.meta.dirname, "frequent-head-signing.ts")];

/** Signed head of the log, and the pid of the process that signed it. */
interface Signed {
  readonly by: number;
  readonly note: string;
}

/** Reads the heads that services signed, from a file in the installation's folder. */
function openHeads(world: Installation) {
  const file = join(world.directory, "signed-heads");
  appendFileSync(file, "");
  Object.assign(world.env, { SIGNED_HEADS: file });
  const read = (): readonly Signed[] =>
    readFileSync(file, "utf8")
      .split("\n")
      .flatMap((line) => (line.endsWith("}") ? [JSON.parse(line) as Signed] : []));
  return {
    read,
    /** Waits until `count` more heads are signed: by the process `by`, or by any process. */
    async untilMore(count: number, by?: number): Promise<void> {
      const countNow = async () => read().filter((head) => by === undefined || head.by === by).length;
      const wanted = (await countNow()) + count;
      await until(countNow, (now) => now >= wanted);
    },
  };
}

/**
 * Expects that each head fits the log, compared with a tree computed without tiles, and that each head extends the one
 * before.
 */
async function expectOneHistory(store: EventStore, key: string, notes: readonly string[]): Promise<Checkpoint[]> {
  const publicKey = parsePublicKey(key);
  const heads = notes.map((note) => openCheckpoint(note, publicKey)).filter(({ position }) => position > 0);
  const { rootOf } = await rootsOfEvents(store);
  const bySize = new Map<number, Checkpoint>();
  for (const head of heads) {
    const { position, hash, root } = bySize.get(head.position) ?? head;
    expect([head.position, head.hash, head.root]).toEqual([position, hash, root]);
    bySize.set(position, head);
  }
  const distinct = [...bySize.values()].toSorted((one, other) => one.position - other.position);
  for (const { position, hash, root } of distinct) {
    expect([position, hash, root]).toEqual([position, await store.hashAt(position), await rootOf(position)]);
  }
  for (const [at, head] of distinct.slice(1).entries())
    expect(await proveExtension(store, [distinct[at]!, head])).toBeArray();
  return distinct;
}

const KILLS = isWhole ? 200 : 20;

/**
 * Number of connections that post clicks. They are so many that the Merkle tree gets a full tile between most heads.
 */
const CONNECTIONS = 64;

/**
 * Latest time in ms at which a signer is killed, counted from its second head. Until then it writes the tiles, the
 * signature and the file of the next head.
 */
const LIFE_MS_MAX = 200;

test(`signed heads and tree stay those of the log after ${KILLS} times kill -9`, async () => {
  await using world = await openInstallation();
  Object.assign(world.env, { CHAT_WEBHOOK_URL: "", TELEGRAM_BOT_TOKEN: "", TELEGRAM_CHAT_ID: "" });
  const heads = openHeads(world);
  let serving = world.serve({}, FLAGS);
  using load = startLoad({ connections: CONNECTIONS, service: () => serving });
  for (let number = 1; number <= KILLS; number++) {
    const service = await serving;
    await heads.untilMore(2);
    await Bun.sleep(Math.random() * LIFE_MS_MAX);
    const restart = Promise.withResolvers<Running>();
    serving = restart.promise;
    await kill(service);
    // The restarted service checks the log against the last signed head, and refuses to start if they disagree.
    restart.resolve(world.serve({}, FLAGS));
  }
  await load.stop();
  const last = await serving;
  expect(last.log()).not.toContain("could not be written");
  expect(await stop(last)).toBe(0);

  await using store = await openStoredLog(loadConfig(world.env, () => ""));
  const { position } = await store.head();
  const distinct = await expectOneHistory(
    store,
    await readPublicKey(world),
    heads.read().map(({ note }) => note),
  );
  const tree = createLogTree(store);
  expect(await tree.extend(position)).toBe(true);
  const { rootOf } = await rootsOfEvents(store);
  expect(Buffer.from(await tree.at(position).root()).toString("hex")).toBe(await rootOf(position));
  const { lost, doubled } = await lossesOf(world, load.acknowledged);
  console.log(
    `kill -9 ${KILLS} while heads are signed: ${distinct.length} heads, all those of the log of ${position} events; ` +
      `acknowledged ${load.acknowledged.size}, lost ${lost.length}, doubled ${doubled.length}`,
  );
  expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
  expect(distinct.length).toBeGreaterThan(KILLS);
  await expectWhole(world);
});

const INSTANCES = 3;
const TAKEOVERS = isWhole ? 20 : 4;

/**
 * Number of heads that each signer signs before it is killed. The next constant is the number of clicks in that time.
 */
const HEADS_EACH = 20;
const CLICKS_EACH = 50;

test(`${INSTANCES} instances on PostgreSQL sign one history while the signer is killed ${TAKEOVERS} times`, async () => {
  await using server = await startPostgres();
  const settings = { DATABASE_URL: await server.newDatabase(), SIGNED_HEADS: "/dev/null" };
  await using instances = await openInstances({ count: INSTANCES, settings, rows: [], flags: FLAGS });
  const { world, places } = instances;
  const heads = openHeads(world);
  const key = await readPublicKey(world);
  const witness = await openWitness(world, key);
  Object.assign(world.env, witness.settings);
  for (const place of places) {
    expect(await instances.end(place, "SIGTERM")).toBe(0);
    await instances.start(place);
  }
  using load = startNamedClicks(instances, { callers: 4, pauseMs: 5 });
  const given: string[] = [];
  const killed: number[] = [];
  const logs: (() => string)[] = [];
  const signerNow = async () => {
    const living = instances.living();
    const { roles } = await healthOf(living[0]!.service);
    return living.find(({ id }) => id === roles["signed-heads"]);
  };
  for (let round = 0; round < TAKEOVERS; round++) {
    const signer = await until(signerNow, (found) => found !== undefined);
    const { pid } = signer!.service.process;
    await heads.untilMore(HEADS_EACH, pid);
    await load.more(CLICKS_EACH);
    for (const { service } of instances.living()) {
      const answer = await service.get("/api/audit/head", { headers: BEARER });
      expect(answer.status).toBe(200);
      given.push(await answer.text());
    }
    given.push((await world.execute("audit", "head")).out);
    if (round % 3 === 2) await witness.restart();
    killed.push(pid);
    logs.push(signer!.service.log);
    await instances.end(signer!.place, "SIGKILL");
    await instances.start(signer!.place);
  }
  await untilReady(instances);
  await until(signerNow, (found) => found !== undefined);
  await heads.untilMore(HEADS_EACH);
  await load.stop();
  logs.push(...instances.living().map(({ service }) => service.log));
  for (const place of places) expect(await instances.end(place, "SIGTERM")).toBe(0);

  await using store = await openStoredLog(loadConfig(world.env, () => ""));
  const signed = heads.read();
  const cosigned = (await store.checkpoints.readCosigned()) ?? "";
  const distinct = await expectOneHistory(store, key, [...signed.map(({ note }) => note), ...given, cosigned]);
  const signers = signed.map(({ by }) => by).filter((by, at, all) => by !== all[at - 1]);
  const answers = witness.said.filter((line) => /^\d{3} /.test(line));
  const refused = answers.filter((line) => !/^(?:200|409) /.test(line));
  console.log(
    `a signer killed ${killed.length} times, of ${INSTANCES} instances on PostgreSQL: ${signed.length} heads signed by ` +
      `${signers.length} in turn, ${given.length} given away, ${answers.length} answers of the witness, refused ${refused.length}; ` +
      `${distinct.length} sizes, one root for each, each extends the one before`,
  );
  // Each signer occurs once: no signer signs a head after another one has begun.
  expect(signers).toEqual([...new Set(signers)]);
  expect(signers.length).toBeGreaterThan(TAKEOVERS);
  expect(refused).toEqual([]);
  expect(answers.some((line) => line.startsWith("200 "))).toBe(true);
  expect(logs.filter((log) => log().includes("a split view") || log().includes("rolled back"))).toEqual([]);
  await expectWhole(world);
});
