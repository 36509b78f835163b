import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { BEARER, openInstallation, until, type Running, type Installation } from "../harness/process.ts";
import { arrivalsAt, isOfChannel, nameOf, unlimit, type NetworkRow } from "./delivery-network-table.ts";
import { fakeClock } from "./fake-clock.ts";

/** Factor by which all clocks and timers are faster: a timeout of five seconds takes half a second. */
const SPEED = 10;

/**
 * Settings with which a service sends each click in a message of its own, so that the test finds every click at the
 * network. They have an effect only if a chat is configured.
 */
export const NO_DIGESTS = { CHAT_DIGEST_AFTER_SECONDS: "3600" };

/** State of the log and of the network at the moment when a service was killed. */
export interface Kill {
  /** Position of the last event in the log. */
  readonly position: number;
  /**
   * Number of times that each click or direct send had arrived at the network, by the name that the test gave to it.
   */
  readonly arrived: ReadonlyMap<string, number>;
}

/** A service that is killed and restarted on the same log, with fast clocks. Disposing it stops everything. */
export interface Lives extends AsyncDisposable {
  readonly world: Installation;
  readonly kills: readonly Kill[];
  /** Starts the service with `settings` added, which also apply to all later starts. */
  start(settings?: Record<string, string>): Promise<void>;
  kill(): Promise<void>;
  /**
   * Kills the service when the network has received `count` more messages; the answer to the last one never arrives.
   */
  killAtArrival(count: number): Promise<void>;
  /** The current instance, or the next one that starts. */
  service(): Promise<Running>;
  /** Repeats a request with the same idempotency key until it is answered, as callers do. */
  post(path: string, body?: unknown): Promise<Response>;
  /** The health of a channel; by default, of the channel under test. */
  health(channel?: ChannelName): Promise<ChannelHealth>;
}

export interface ChannelHealth {
  readonly pending: number;
  readonly circuit: string;
  readonly suspended: object | null;
}

export async function openLives(row: NetworkRow, settings: Record<string, string>): Promise<Lives> {
  const world = await openInstallation();
  const { sandbox, env } = world;
  sandbox.clock.setSpeed(SPEED);
  const clock = fakeClock(world, { speed: SPEED, timersToo: true });
  unlimit(sandbox);
  for (const name of Object.keys(env).filter(isOfChannel)) delete env[name];
  Object.assign(env, settings);
  const kills: Kill[] = [];
  let living = Promise.withResolvers<Running>();
  let keys = 0;

  const buried = async (): Promise<void> => {
    const { process } = await living.promise;
    living = Promise.withResolvers();
    await process.exited;
    kills.push({ position: lastPosition(world), arrived: arrivedByName(row, world) });
  };

  return {
    world,
    kills,
    async start(more = {}) {
      Object.assign(env, more);
      // The fake clock of a process begins to run when the process starts, so it is set to the sandbox's time just
      // before.
      clock.set(sandbox.clock.now());
      living.resolve(await world.serve());
    },
    async kill() {
      (await living.promise).process.kill("SIGKILL");
      await buried();
    },
    async killAtArrival(count) {
      const { process } = await living.promise;
      await atArrival(row, world, count, () => process.kill("SIGKILL"));
      await buried();
    },
    service: () => living.promise,
    async post(path, body) {
      const key = { "idempotency-key": `case-${keys++}` };
      for (;;) {
        const service = await living.promise;
        const answer = await service.post(path, body, { ...BEARER, ...key }).catch(() => undefined);
        if (answer !== undefined) return answer;
        // No answer, mostly because the service was killed; the request is repeated.
        await Promise.race([service.process.exited, Bun.sleep(REPEAT_MS)]);
      }
    },
    async health(channel = row.channel) {
      const service = await living.promise;
      const { channels } = (await (await service.get("/api/health")).json()) as HealthBody;
      const state = channels[channel];
      if (state === undefined) throw new Error(`the service has no channel ${channel}`);
      return state;
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

interface HealthBody {
  readonly channels: Readonly<Record<ChannelName, ChannelHealth>>;
}

/** Delay before a caller repeats an unanswered request. */
const REPEAT_MS = 100;

/**
 * Maximum time in ms until everything is settled: longer than all backoffs of any case, at the speed of the service's
 * clock.
 */
const SETTLED_MS_MAX = 90_000;

/** Waits until nothing is pending on the channel under test. */
export async function untilSettled(lives: Lives): Promise<void> {
  await until(
    () => lives.health(),
    ({ pending }) => pending === 0,
    SETTLED_MS_MAX,
  );
}

/** Returns how often each named click or text has arrived at the network. */
export function arrivedByName(row: NetworkRow, { sandbox }: Installation): Map<string, number> {
  const arrived = new Map<string, number>();
  for (const arrival of arrivalsAt(row, sandbox).kept) {
    const name = nameOf(arrival);
    if (name !== undefined) arrived.set(name, (arrived.get(name) ?? 0) + 1);
  }
  return arrived;
}

/** Calls `act` when the network receives its `count`th message or event from now on, before it answers. */
function atArrival(row: NetworkRow, { sandbox }: Installation, count: number, act: () => void): Promise<void> {
  const arrivals = arrivalsAt(row, sandbox);
  const add = arrivals.add.bind(arrivals);
  const arrived = Promise.withResolvers<void>();
  let left = count;
  arrivals.add = (item) => {
    add(item);
    if (--left > 0) return;
    arrivals.add = add;
    act();
    arrived.resolve();
  };
  return arrived.promise;
}

function lastPosition({ directory }: Installation): number {
  using log = new Database(join(directory, "reachlog.sqlite"), { readonly: true });
  return (log.query("SELECT max(position) AS last FROM events").get() as { last: number }).last;
}
