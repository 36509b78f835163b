import type { Snapshots } from "eventstore-lite";
import { sleep, type Sleep } from "../platform/clock-ids-and-timers.ts";
import { errorFields, createFaultReport } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { repeatUntilDisposed } from "../platform/signals.ts";
import type { LogContext } from "./event-log.ts";

/** One instance of the service on a log, as its heartbeat describes it to the other instances. */
export interface Instance {
  /** Id of the instance, a UUIDv7: the oldest instance sorts first. */
  readonly id: string;
  /** Address of the instance, as a URL. */
  readonly url: string;
  readonly version: string;
  /** Time at which the instance started, ISO 8601. */
  readonly started_at: string;
  /** Digest of the settings that all instances of a log should share. */
  readonly configuration: string;
  /** Settings that must be equal on all instances, by their environment variable. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface Instances extends AsyncDisposable {
  /**
   * Instances that lived when the heartbeats were last read: this instance first, then the others, the oldest first.
   */
  readonly live: readonly Instance[];
  /**
   * True on the oldest instance, which does what only one instance should do. For a while it may be true on two
   * instances or on none, so that work must do no harm if it is done twice or late.
   */
  isOldest(): boolean;
}

/** Creates the list of instances for a log in a file, which has only one service. */
export function singleInstance(own: Instance): Instances {
  return { live: [own], isOldest: () => true, async [Symbol.asyncDispose]() {} };
}

/** Storage of the heartbeats: rows among a log's snapshots. */
interface HeartbeatStore {
  readonly snapshots: Snapshots;
}

/** Clock and timer by which an instance sends heartbeats, and notices that those of others are missing. */
export interface HeartbeatTime {
  readonly sleep: Sleep;
  /** A clock that only goes forward, in ms. */
  readonly elapsedMs: () => number;
}

export const REAL_TIME: HeartbeatTime = { sleep, elapsedMs: () => performance.now() };

const HEARTBEAT_MS = 10_000;

/**
 * Time in ms without a heartbeat after which an instance counts as dead. An instance may thus miss two heartbeats in a
 * row.
 */
const DEAD_AFTER_MS = 30_000;

/** Interval between heartbeats at a start, in ms, while it is unknown if another instance is alive. */
const START_HEARTBEAT_MS = 1_000;

/**
 * Prefix of the names of snapshots that serve as heartbeats of instances. They hold no state of a projection; their
 * version grows with each heartbeat.
 */
const PREFIX = "instance/";

/**
 * Makes this instance known to the log's other instances, and watches them, until it is disposed. Heartbeats, not
 * times, show who is alive, as two machines read times differently. Throws a ServiceError (configuration) if settings
 * differ.
 */
export async function joinInstances(context: LogContext, own: Instance): Promise<Instances> {
  const { eventLog, logger, elapsedMs = REAL_TIME.elapsedMs } = context;
  const { store } = eventLog;
  const others = watchOthers(store, elapsedMs, own.id);
  await using joining = new AsyncDisposableStack();
  const state = JSON.stringify(own);
  let count = 0;
  const heartbeat = () => store.snapshots.save(`${PREFIX}${own.id}`, { version: ++count, position: 0, state });
  joining.defer(() => leave(context, own));
  await heartbeat();
  // Sends heartbeats while it waits, so that two instances that start at once see that the other one lives.
  const differing = await waitForLiving(
    context.sleep,
    others,
    (other) => findDifference(own, other) !== undefined,
    heartbeat,
  );
  if (differing !== undefined) throw refusal(own, differing);
  const report = createFaultReport(logger.warn, "a heartbeat failed");
  const beat = async (): Promise<void> => {
    try {
      await heartbeat();
      await others.look();
      report.succeeded();
    } catch (fault) {
      report.failed(fault);
    }
  };
  joining.use(repeatUntilDisposed(context.sleep, HEARTBEAT_MS, beat));
  const joined = joining.move();
  return {
    get live() {
      return [own, ...others.live()];
    },
    isOldest: () => others.live().every(({ id }) => own.id < id),
    [Symbol.asyncDispose]: () => joined.disposeAsync(),
  };
}

/**
 * Throws a ServiceError (busy) that names the service, if a living service has the log. Needed for a log on a server,
 * because the store refuses a second owner only for a log in a file.
 */
export async function refuseServed(store: HeartbeatStore, time = REAL_TIME): Promise<void> {
  const living = await findLiving(store, time);
  if (living === undefined) return;
  throw new ServiceError("busy", `the service at ${living.url} (instance ${living.id}) serves this log: stop it first`);
}

/**
 * Finds a living service of the log, for a process that is no service itself; undefined if none lives. If a service was
 * killed, this waits until its heartbeat counts as missing.
 */
export async function findLiving(store: HeartbeatStore, time = REAL_TIME): Promise<Instance | undefined> {
  return waitForLiving(time.sleep, watchOthers(store, time.elapsedMs, ""));
}

/** Removes this instance's heartbeat, so that the next instance need not wait to find it dead. */
async function leave({ eventLog, logger }: LogContext, { id }: Instance): Promise<void> {
  try {
    await eventLog.store.snapshots.remove([`${PREFIX}${id}`]);
  } catch (fault) {
    logger.warn("this instance's heartbeat could not be removed", errorFields(fault));
  }
}

interface Seen {
  readonly instance: Instance;
  readonly heartbeats: number;
  /** Time at which the instance's last heartbeat was seen. */
  readonly at: number;
  /** True if another heartbeat of the instance came after the first that was seen. */
  readonly isAlive: boolean;
}

type Others = ReturnType<typeof watchOthers>;

function watchOthers(store: HeartbeatStore, elapsedMs: () => number, ownId: string) {
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
    /** Reads the heartbeats of all instances, and removes dead instances from the list. */
    async look(): Promise<void> {
      const found = new Map<string, Seen>();
      for (const { name, version } of await store.snapshots.list(PREFIX)) {
        const one = name === `${PREFIX}${ownId}` ? undefined : await seen(name, version);
        if (one !== undefined) found.set(name, one);
      }
      const dead = [...found].flatMap(([name, { at }]) => (elapsedMs() - at < DEAD_AFTER_MS ? [] : [name]));
      // A removed instance that was only paused for so long sends another heartbeat, which puts it back in the list.
      await store.snapshots.remove(dead);
      for (const name of dead) found.delete(name);
      known = found;
    },
    seen: (): readonly Seen[] => [...known.values()],
    live: (): readonly Instance[] => [...known.values()].map(({ instance }) => instance),
  };
}

/**
 * Waits until another instance that `isMeant` accepts sends a heartbeat, and returns it; undefined if all of them prove
 * dead.
 */
async function waitForLiving(
  pause: Sleep,
  others: Others,
  isMeant: (other: Instance) => boolean = () => true,
  heartbeat = async (): Promise<void> => {},
): Promise<Instance | undefined> {
  for (;;) {
    await others.look();
    const meant = others.seen().filter(({ instance }) => isMeant(instance));
    const living = meant.find(({ isAlive }) => isAlive);
    if (living !== undefined || meant.length === 0) return living?.instance;
    await pause(START_HEARTBEAT_MS, new AbortController().signal);
    // Sends a heartbeat during the wait: of two instances that start together, each has to see that the other one is
    // alive.
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
    `${name} is ${here}, and ${there}: all instances of a log need the same value. Stop them all and change it everywhere`,
  );
}
