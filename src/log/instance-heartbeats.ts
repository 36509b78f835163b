import type { LogStore } from "../../events/catalog.ts";
import { sleep } from "../platform/clock.ts";
import { errorFields, createFaultReport } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { repeatUntilDisposed } from "../platform/signals.ts";
import type { PartDeps } from "./event-log.ts";

/** One service of a log, as all others see it. */
export interface Instance {
  /** UUIDv7: the oldest sorts first. */
  readonly id: string;
  /** Where it is reached. */
  readonly url: string;
  readonly version: string;
  /** ISO 8601. */
  readonly started_at: string;
  /** Digest of the settings that all instances of a log should share. */
  readonly configuration: string;
  /** Settings in which no two instances may differ, by their variable. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface Instances extends AsyncDisposable {
  /** As of the last look: this instance first, then the oldest. */
  readonly live: readonly Instance[];
  /** Does what one of all has to do. Two that take themselves for it, or none for a while, must do no harm. */
  isOldest(): boolean;
}

/** Of a log in a file, which has one service. */
export function singleInstance(own: Instance): Instances {
  return { live: [own], isOldest: () => true, async [Symbol.asyncDispose]() {} };
}

export interface InstancesDeps extends Pick<PartDeps, "logger" | "sleep"> {
  readonly store: Pick<LogStore, "snapshots">;
  /** A clock that only goes forward, in ms. */
  readonly elapsedMs: () => number;
}

const HEARTBEAT_MS = 10_000;

/** Without a heartbeat for so long an instance is dead: two of them may fail. */
const DEAD_AFTER_MS = 30_000;

/** While another instance has to be found dead or alive, at a start. */
const START_HEARTBEAT_MS = 1_000;

/** An instance is a snapshot that folds nothing: its version counts its heartbeats. */
const PREFIX = "instance/";

/**
 * Makes this instance known to all others of the log, and knows them, until it is disposed. Who is alive
 * is known by heartbeats that come, and not by times, which two machines read differently.
 *
 * Throws a ServiceError (configuration) when another one is alive whose settings differ from ours.
 */
export async function joinInstances(deps: InstancesDeps, own: Instance): Promise<Instances> {
  const others = watchOthers(deps, own);
  await using joining = new AsyncDisposableStack();
  const state = JSON.stringify(own);
  let count = 0;
  const heartbeat = () => deps.store.snapshots.save(`${PREFIX}${own.id}`, { version: ++count, position: 0, state });
  joining.defer(() => leave(deps, own));
  await heartbeat();
  const differing = await waitForLiving(deps, others, (other) => findDifference(own, other) !== undefined, heartbeat);
  if (differing !== undefined) throw refusal(own, differing);
  const report = createFaultReport(deps.logger.warn, "a heartbeat failed");
  const beat = async (): Promise<void> => {
    try {
      await heartbeat();
      await others.look();
      report.succeeded();
    } catch (fault) {
      report.failed(fault);
    }
  };
  joining.use(repeatUntilDisposed(deps.sleep, HEARTBEAT_MS, beat));
  const joined = joining.move();
  return {
    get live() {
      return [own, ...others.live()];
    },
    isOldest: () => others.live().every(({ id }) => own.id < id),
    [Symbol.asyncDispose]: () => joined.disposeAsync(),
  };
}

export type HeartbeatTime = Pick<InstancesDeps, "sleep" | "elapsedMs">;

export const REAL_TIME: HeartbeatTime = { sleep, elapsedMs: () => performance.now() };

/** Throws a ServiceError (busy) that names a service of the log, which has no single owner on a server. */
export async function refuseServed(store: Pick<LogStore, "snapshots">, time = REAL_TIME): Promise<void> {
  const living = await findLiving({ store, ...time });
  if (living === undefined) return;
  throw new ServiceError("busy", `the service at ${living.url} (instance ${living.id}) serves this log: stop it first`);
}

/** A service of the log, for who is none; undefined: none lives. Takes its time only where one was killed. */
export async function findLiving(deps: Omit<InstancesDeps, "logger">): Promise<Instance | undefined> {
  return waitForLiving(deps, watchOthers(deps, { id: "" }));
}

/** Removes the heartbeat, so that the next instance need not wait to find this one dead. */
async function leave({ store, logger }: InstancesDeps, { id }: Instance): Promise<void> {
  try {
    await store.snapshots.remove([`${PREFIX}${id}`]);
  } catch (fault) {
    logger.warn("this instance could not sign off", errorFields(fault));
  }
}

interface Seen {
  readonly instance: Instance;
  readonly heartbeats: number;
  /** When its last heartbeat was seen. */
  readonly at: number;
  /** Whether a heartbeat came since it was first seen. */
  readonly isAlive: boolean;
}

type Others = ReturnType<typeof watchOthers>;

function watchOthers({ store, elapsedMs }: Pick<InstancesDeps, "store" | "elapsedMs">, own: Pick<Instance, "id">) {
  let known = new Map<string, Seen>();

  const seen = async (name: string, heartbeats: number): Promise<Seen | undefined> => {
    const before = known.get(name);
    const at = elapsedMs();
    if (before !== undefined)
      return before.heartbeats === heartbeats ? before : { ...before, heartbeats, at, isAlive: true };
    const row = await store.snapshots.load(name);
    return row && { instance: JSON.parse(row.state) as Instance, heartbeats, at, isAlive: false };
  };

  return {
    /** Looks for heartbeats, and forgets the dead. */
    async look(): Promise<void> {
      const found = new Map<string, Seen>();
      for (const { name, version } of await store.snapshots.list(PREFIX)) {
        const one = name === `${PREFIX}${own.id}` ? undefined : await seen(name, version);
        if (one !== undefined) found.set(name, one);
      }
      const dead = [...found].flatMap(([name, { at }]) => (elapsedMs() - at < DEAD_AFTER_MS ? [] : [name]));
      // One that only stood still makes itself known again.
      await store.snapshots.remove(dead);
      for (const name of dead) found.delete(name);
      known = found;
    },
    seen: (): readonly Seen[] => [...known.values()],
    live: (): readonly Instance[] => [...known.values()].map(({ instance }) => instance),
  };
}

/** Waits until one of these others sends a heartbeat, which it returns, or all of them prove dead. */
async function waitForLiving(
  { sleep }: Pick<InstancesDeps, "sleep">,
  others: Others,
  isMeant: (other: Instance) => boolean = () => true,
  heartbeat = async (): Promise<void> => {},
): Promise<Instance | undefined> {
  for (;;) {
    await others.look();
    const meant = others.seen().filter(({ instance }) => isMeant(instance));
    const living = meant.find(({ isAlive }) => isAlive);
    if (living !== undefined || meant.length === 0) return living?.instance;
    await sleep(START_HEARTBEAT_MS, new AbortController().signal);
    // Of two that start at once, each has to see that the other one is alive.
    await heartbeat();
  }
}

function findDifference(own: Instance, other: Instance): string | undefined {
  return Object.keys(own.settings).find((name) => own.settings[name] !== other.settings[name]);
}

function refusal(own: Instance, other: Instance): ServiceError {
  const name = findDifference(own, other) ?? "";
  const [here, there] = [own, other].map(({ settings, url, id }) => `${settings[name]} at ${url} (instance ${id})`);
  return new ServiceError(
    "configuration",
    `${name} is ${here}, and ${there}: all instances of a log need the same: stop them all and change it everywhere`,
  );
}
